// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <pthread.h>

#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/future.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/channels/accepting.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_kinds.h"
#include "rpc/transports/connections.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"
#include "rpc/transports/link.h"
#include "rpc/transports/private_socket.h"
#include "rpc/worker.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

absl::Status SendAfterShutdown() {
  return absl::UnavailableError("the transport is shut down");
}

// If the socket takes what is written, its streams end within this time.
constexpr milliseconds kEndPatience{500};

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(const GrpcOptions& options)
      : all_(std::make_shared<Connections>(options)) {}
  ~GrpcTransport() override { Shutdown(milliseconds(0)); }

  absl::Status Listen();

  std::string address() const override { return address_; }
  absl::Status Start(const WorkerInfo& self, MessageHandler* handler) override;
  void AddPeer(const WorkerInfo& peer) override;
  void RemovePeer(const std::string& name) override;
  void Forget(const WorkerInfo& peer) override;
  void Disconnect(const std::string& name, Task then) override;
  void Send(const std::string& peer, Message message, Sent sent) override;
  Tensor EmptyFor(const std::string& peer, const Shape& shape,
                  const TensorOptions& options) override;
  std::vector<ChannelInfo> Channels() const override;
  std::vector<TensorChannelInfo> TensorChannels() override;
  // Takes at most half a second more than its timeout. What has not ended by
  // then is left, with a warning, to a thread that waits for it and frees it. A
  // process may exit while such a thread waits.
  void Shutdown(milliseconds timeout) override;

 private:
  using State = Connections::State;

  absl::StatusOr<std::shared_ptr<Link>> FindForSend(const std::string& peer);
  std::shared_ptr<Link> Find(const std::string& name);
  std::vector<std::shared_ptr<Link>> AllLinks() const;
  void SetServing(bool serving);
  void Close(milliseconds timeout);

  const std::shared_ptr<Connections> all_;
  LinkHost& host_ = all_->host;
  PrivateSocket socket_;
  std::string address_;
  Mutex shutdown_mutex_;  // one Shutdown at a time
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

absl::Status GrpcTransport::Listen() {
  const GrpcOptions& options = host_.options;
  KeepFreedMemory();
  RaiseDescriptorLimit();
  if (options.lease.count() != 0) RETURN_IF_ERROR(CheckLease(options.lease));
  RETURN_IF_ERROR(CheckWorkerExposure(options.security, options.listen,
                                      options.advertise_host));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetServerArguments(builder, KeepaliveOf(options.lease));
  const bool listens_on_unix = absl::StartsWith(options.listen, "unix:");
  HostPort tcp;
  if (!listens_on_unix) {
    ASSIGN_OR_RETURN(tcp, ParseHostPort(options.listen));
  }
  ASSIGN_OR_RETURN(tcp.port, all_->acceptor->Listen(builder, options.listen,
                                                    options.security));
  const bool private_socket = options.unix_socket && !listens_on_unix;
  if (private_socket || options.shared_memory) {
    ASSIGN_OR_RETURN(socket_, PrivateSocket::Make());
  }
  const auto wakeup = MakeFutexEvent(options);
  if (wakeup != nullptr) host_.poller = RingPoller::Make(wakeup);
  ASSIGN_OR_RETURN(host_.kinds,
                   MakeChannelKinds(options, socket_.fd_path(), wakeup));
  if (private_socket) {
    const std::string path = "unix:" + socket_.path();
    RETURN_IF_ERROR(
        all_->acceptor->Listen(builder, path, options.security).status());
  }
  builder.RegisterCallbackGenericService(all_.get());
  if (options.rendezvous != nullptr) {
    options.rendezvous->OnLetIn(
        [weak = std::weak_ptr(all_->acceptor)](const std::string& peer) {
          if (const auto acceptor = weak.lock()) acceptor->LetIn(peer);
        });
    builder.RegisterService(options.rendezvous->service());
  }
  all_->server = builder.BuildAndStart();
  if (all_->server == nullptr)
    return ListenFailure(options.listen, "gRPC makes no server");
  SetServing(false);
  RETURN_IF_ERROR(all_->acceptor->Start());
  if (listens_on_unix) {
    address_ = options.listen;
    return absl::OkStatus();
  }
  address_ = ToString(Advertised(tcp, options.advertise_host));
  if (private_socket) absl::StrAppend(&address_, ";unix:", socket_.path());
  return absl::OkStatus();
}

std::vector<TensorChannelInfo> GrpcTransport::TensorChannels() {
  std::vector<TensorChannelInfo> infos;
  for (const auto& link : AllLinks()) {
    if (const auto channels = link->channels())
      absl::c_move(channels->info(), std::back_inserter(infos));
  }
  return infos;
}

void GrpcTransport::SetServing(bool serving) {
  if (auto* health = all_->server->GetHealthCheckService())
    health->SetServingStatus(serving);
}

absl::Status GrpcTransport::Start(const WorkerInfo& self,
                                  MessageHandler* handler) {
  RETURN_IF_ERROR(CheckWorkerName(self.name));
  if (self.incarnation == 0 || static_cast<int32_t>(self.rank) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", self.name, " needs an incarnation other than 0 and a rank"));
  }
  {
    MutexLock lock(all_->mutex);
    if (all_->state != State::kNew) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the transport of worker ", self.name, " was started before"));
    }
    all_->state = State::kStarted;
    host_.self = self;
    host_.gate->Open(handler);
  }
  if (!socket_.empty() && self.rank != kObserverRank) {
    socket_.Announce({host_.options.cluster, self.name,
                      std::string(*absl::StrSplit(address_, ';').begin())});
  }
  all_->GreetWaiting();
  SetServing(true);
  return absl::OkStatus();
}

std::shared_ptr<Link> GrpcTransport::Find(const std::string& name) {
  MutexLock lock(all_->mutex);
  auto found = all_->links.find(name);
  return found == all_->links.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Link>> GrpcTransport::AllLinks() const {
  std::vector<std::shared_ptr<Link>> links;
  MutexLock lock(all_->mutex);
  for (const auto& [name, link] : all_->links) links.push_back(link);
  return links;
}

void GrpcTransport::AddPeer(const WorkerInfo& peer) {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(all_->mutex);
    link = all_->FindOrMakeLocked(peer);
  }
  link->SetPeer(peer);
}

void GrpcTransport::RemovePeer(const std::string& name) {
  decltype(Connections::links)::node_type removed;
  {
    MutexLock lock(all_->mutex);
    removed = all_->links.extract(name);
  }
  if (removed.empty()) return;
  removed.mapped()->Close(
      absl::UnavailableError(absl::StrCat("worker ", name, " was removed")));
}

void GrpcTransport::Forget(const WorkerInfo& peer) {
  MutexLock lock(all_->mutex);
  auto found = all_->links.find(peer.name);
  if (found == all_->links.end()) return;
  auto known = found->second->CloseUnlessUp(
      peer.incarnation,
      absl::UnavailableError(absl::StrCat("worker ", peer.name, " is gone")));
  if (!known.has_value()) return;
  all_->forgotten.Add(peer.name, *std::move(known));
  all_->links.erase(found);
}

void GrpcTransport::Disconnect(const std::string& name, Task then) {
  if (std::shared_ptr<Link> link = Find(name)) {
    link->Sever(absl::UnavailableError(absl::StrCat("the connection to worker ",
                                                    name, " was severed")),
                std::move(then));
  } else if (then != nullptr) {
    host_.executor->Post(std::move(then));
  }
}

absl::StatusOr<std::shared_ptr<Link>> GrpcTransport::FindForSend(
    const std::string& peer) {
  MutexLock lock(all_->mutex);
  if (all_->state == State::kNew)
    return absl::FailedPreconditionError("Send before Start");
  if (all_->state == State::kShutDown) return SendAfterShutdown();
  if (peer == host_.self.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", peer, " sends to itself"));
  }
  auto found = all_->links.find(peer);
  if (found == all_->links.end()) {
    return absl::NotFoundError(
        absl::StrCat("worker ", host_.self.name, " knows no worker ", peer));
  }
  return found->second;
}

void GrpcTransport::Send(const std::string& peer, Message message, Sent sent) {
  const auto link = FindForSend(peer);
  absl::Status status = link.status();
  if (status.ok()) {
    auto channels =
        Outgoing::UsesChannels(message) ? (*link)->channels() : nullptr;
    auto outgoing = Outgoing::Make(
        std::move(message), host_.options.max_message_bytes, sent,
        host_.executor, host_.options.inline_delivery, std::move(channels));
    if (outgoing.ok()) {
      (*link)->Send(*std::move(outgoing));
      return;
    }
    status = outgoing.status();
  }
  if (sent == nullptr) return;
  host_.executor->Post(
      [sent = std::move(sent), status]() mutable { sent(status); });
}

Tensor GrpcTransport::EmptyFor(const std::string& peer, const Shape& shape,
                               const TensorOptions& options) {
  const std::shared_ptr<Link> link = Find(peer);
  const auto channels = link == nullptr ? nullptr : link->channels();
  return channels == nullptr ? Tensor() : channels->Make(shape, options);
}

std::vector<ChannelInfo> GrpcTransport::Channels() const {
  std::vector<ChannelInfo> channels;
  for (const auto& link : AllLinks()) {
    ChannelInfo channel = link->channel();
    if (channel.up || channel.messages_sent + channel.messages_received > 0)
      channels.push_back(std::move(channel));
  }
  return channels;
}

void GrpcTransport::Shutdown(milliseconds timeout) {
  MutexLock one(shutdown_mutex_);
  if (std::exchange(shut_down_, true)) return;
  Close(timeout);
  const Promise<void> ended;
  std::thread thread([all = all_, ended]() mutable {
    pthread_setname_np(pthread_self(), "baton-linger");
    all->AwaitEnd();
    all.reset();
    ended.Set(absl::OkStatus());
  });
  if (ended.future().Await(kEndPatience).ok()) return thread.join();
  thread.detach();
  LogWarning("a transport is left behind: ", host_.streams.Describe());
}

void GrpcTransport::Close(milliseconds timeout) {
  {
    MutexLock lock(all_->mutex);
    all_->state = State::kShutDown;
  }
  if (all_->server != nullptr) SetServing(false);
  host_.stopping = true;
  all_->CloseWaiting();
  if (timeout.count() > 0) {
    for (const auto& link : AllLinks()) link->BeginGoodbye();
    AwaitIdle(host_, AllLinks(), timeout);
  }
  host_.gate->Close();
  for (const auto& link : AllLinks()) link->Close(SendAfterShutdown());
  if (host_.options.rendezvous != nullptr) host_.options.rendezvous->Close();
  socket_ = PrivateSocket();
  for (const auto& kind : host_.kinds) kind->Stop();
  AwaitPosted(*host_.executor);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcOptions& options) {
  auto transport = std::make_unique<GrpcTransport>(options);
  RETURN_IF_ERROR(transport->Listen());
  return transport;
}

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "core/status.h"
#include "rpc/channels/accepting.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_kinds.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"
#include "rpc/transports/lingering_shutdown.h"
#include "rpc/transports/link.h"
#include "rpc/transports/link_service.h"
#include "rpc/transports/private_socket.h"
#include "rpc/worker.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// More than a cluster has; the limit is needed because names can be made up.
constexpr size_t kMaxPeers = 100'000;

absl::Status SendAfterShutdown() {
  return absl::UnavailableError("the transport is shut down");
}

class GrpcTransport final : public LingeringTransport {
 public:
  explicit GrpcTransport(const GrpcOptions& options);
  ~GrpcTransport() override;

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
  void Shutdown(milliseconds timeout) override;
  void AwaitEnd() override;
  std::string Remains() override { return host_.streams.Describe(); }
  std::vector<TensorChannelInfo> TensorChannels() override;

 private:
  enum class State { kNew, kStarted, kShutDown };

  absl::StatusOr<std::shared_ptr<Link>> FindForSend(const std::string& peer);
  std::shared_ptr<Link> Find(const std::string& name);
  std::shared_ptr<Link> FindOrMakeLocked(const WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Link>> AllLinks() const;
  size_t CountLinks() const;
  bool Admit(const std::shared_ptr<GrpcStream>& stream, const Hello& hello);
  void SetServing(bool serving);

  LinkHost host_;
  const std::shared_ptr<Acceptor> acceptor_;
  LinkService link_service_{
      host_, acceptor_, [this] { return CountLinks(); },
      [this](const std::shared_ptr<GrpcStream>& stream, const Hello& hello) {
        return Admit(stream, hello);
      }};
  PrivateSocket socket_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  std::unordered_map<std::string, std::shared_ptr<Link>> links_
      ABSL_GUARDED_BY(mutex_);
  // Of workers without a link.
  NewestMap<std::string, Link::Incarnations> forgotten_ ABSL_GUARDED_BY(mutex_){
      1024};
};

// An unauthenticated peer must pass three steps: handshake, hello and proof.
GrpcTransport::GrpcTransport(const GrpcOptions& options)
    : acceptor_(std::make_shared<Acceptor>(3 * options.hello_timeout)) {
  host_.options = options;
  host_.executor = std::make_shared<ThreadPool>(1, "baton-link");
  host_.timer = std::make_unique<Timer>("baton-dial");
}

GrpcTransport::~GrpcTransport() {
  Shutdown(milliseconds(0));
  AwaitEnd();
}

absl::Status GrpcTransport::Listen() {
  const GrpcOptions& options = host_.options;
  KeepFreedMemory();
  RaiseDescriptorLimit();
  if (options.lease.count() != 0) RETURN_IF_ERROR(CheckLease(options.lease));
  RETURN_IF_ERROR(CheckListen(options.listen));
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
  ASSIGN_OR_RETURN(
      tcp.port, acceptor_->Listen(builder, options.listen, options.security));
  const bool private_socket = options.unix_socket && !listens_on_unix;
  if (private_socket || options.shared_memory) {
    ASSIGN_OR_RETURN(socket_, PrivateSocket::Make());
  }
  const auto wakeup = MakeFutexEvent(options);
  if (wakeup != nullptr) host_.poller = std::make_shared<RingPoller>(wakeup);
  ASSIGN_OR_RETURN(host_.kinds,
                   MakeChannelKinds(options, socket_.fd_path(), wakeup));
  if (private_socket) {
    const std::string path = "unix:" + socket_.path();
    RETURN_IF_ERROR(
        acceptor_->Listen(builder, path, options.security).status());
  }
  builder.RegisterCallbackGenericService(&link_service_);
  if (options.rendezvous != nullptr) {
    options.rendezvous->OnLetIn(
        [weak = std::weak_ptr(acceptor_)](const std::string& peer) {
          if (const auto acceptor = weak.lock()) acceptor->LetIn(peer);
        });
    builder.RegisterService(options.rendezvous->service());
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return ListenFailure(options.listen, "gRPC makes no server");
  SetServing(false);
  RETURN_IF_ERROR(acceptor_->Start());
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
  if (auto* health = server_->GetHealthCheckService())
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
    MutexLock lock(mutex_);
    if (state_ != State::kNew) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the transport of worker ", self.name, " was started before"));
    }
    state_ = State::kStarted;
    host_.self = self;
    host_.gate->Open(handler);
  }
  if (!socket_.empty() && self.rank != kObserverRank) {
    socket_.Announce({host_.options.cluster, self.name,
                      std::string(*absl::StrSplit(address_, ';').begin())});
  }
  link_service_.Open();
  SetServing(true);
  return absl::OkStatus();
}

std::shared_ptr<Link> GrpcTransport::Find(const std::string& name) {
  MutexLock lock(mutex_);
  auto found = links_.find(name);
  return found == links_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Link>> GrpcTransport::AllLinks() const {
  std::vector<std::shared_ptr<Link>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, link] : links_) links.push_back(link);
  return links;
}

size_t GrpcTransport::CountLinks() const {
  MutexLock lock(mutex_);
  return links_.size();
}

void GrpcTransport::AddPeer(const WorkerInfo& peer) {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    link = FindOrMakeLocked(peer);
  }
  link->SetPeer(peer);
}

std::shared_ptr<Link> GrpcTransport::FindOrMakeLocked(const WorkerInfo& peer) {
  std::shared_ptr<Link>& entry = links_[peer.name];
  if (entry == nullptr) {
    entry = Link::Make(
        host_, peer, forgotten_.Take(peer.name).value_or(Link::Incarnations()));
  }
  return entry;
}

void GrpcTransport::RemovePeer(const std::string& name) {
  decltype(links_)::node_type removed;
  {
    MutexLock lock(mutex_);
    removed = links_.extract(name);
  }
  if (removed.empty()) return;
  removed.mapped()->Close(
      absl::UnavailableError(absl::StrCat("worker ", name, " was removed")));
}

void GrpcTransport::Forget(const WorkerInfo& peer) {
  MutexLock lock(mutex_);
  auto found = links_.find(peer.name);
  if (found == links_.end()) return;
  auto known = found->second->CloseUnlessUp(
      peer.incarnation,
      absl::UnavailableError(absl::StrCat("worker ", peer.name, " is gone")));
  if (!known.has_value()) return;
  forgotten_.Add(peer.name, *std::move(known));
  links_.erase(found);
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
  MutexLock lock(mutex_);
  if (state_ == State::kNew)
    return absl::FailedPreconditionError("Send before Start");
  if (state_ == State::kShutDown) return SendAfterShutdown();
  if (peer == host_.self.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", peer, " sends to itself"));
  }
  auto found = links_.find(peer);
  if (found == links_.end()) {
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

bool GrpcTransport::Admit(const std::shared_ptr<GrpcStream>& stream,
                          const Hello& hello) {
  HelloAnswer answer = Judge(host_.options, host_.self, hello);
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kShutDown) {
      answer.verdict = Verdict::kShutDown;
      answer.text = absl::StrCat("worker ", host_.self.name, " has shut down");
    }
    if (answer.verdict == Verdict::kOk && links_.size() >= kMaxPeers &&
        !links_.contains(hello.self.name)) {
      answer.verdict = Verdict::kRefused;
      answer.text = absl::StrCat("worker ", host_.self.name, " knows ",
                                 links_.size(), " workers already");
    }
    if (answer.verdict == Verdict::kOk) link = FindOrMakeLocked(hello.self);
  }
  if (link != nullptr) return link->Accept(stream, hello);
  if (answer.verdict == Verdict::kShutDown) {
    LogDebug("refused a connection: ", answer.text);
  } else {
    LogWarning("refused a connection: ", answer.text);
  }
  stream->CloseWith(Encode(answer));
  return false;
}

void GrpcTransport::Shutdown(milliseconds timeout) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(state_, State::kShutDown) == State::kShutDown) return;
  }
  if (server_ != nullptr) SetServing(false);
  host_.stopping = true;
  link_service_.Close();
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

void GrpcTransport::AwaitEnd() {
  if (host_.poller != nullptr) host_.poller->Stop();
  acceptor_->Stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  host_.streams.AwaitNone();
  server_ = nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcOptions& options) {
  auto transport = std::make_shared<GrpcTransport>(options);
  RETURN_IF_ERROR(transport->Listen());
  return WithLingeringShutdown(std::move(transport));
}

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_args.h"
#include "rpc/transports/link.h"
#include "rpc/transports/private_socket.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// Lanes that were opened and said no hello yet, or came before Start.
constexpr size_t kMaxStrangers = 1024;

absl::Status SendAfterShutdown() {
  return absl::UnavailableError("the transport is shut down");
}

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(const GrpcOptions& options);
  ~GrpcTransport() override;

  absl::Status Listen();

  std::string address() const override { return address_; }
  absl::Status Start(const WorkerInfo& self, MessageHandler* handler) override;
  void AddPeer(const WorkerInfo& peer) override;
  void RemovePeer(const std::string& name) override;
  void Disconnect(const std::string& name) override;
  void Send(const std::string& peer, Message message, Sent sent) override;
  void Shutdown(milliseconds timeout) override;

 private:
  enum class State { kNew, kStarted, kShutDown };

  // Takes calls in and listens to their hello.
  class Door final : public grpc::CallbackGenericService {
   public:
    explicit Door(GrpcTransport& transport) : transport_(transport) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override;

   private:
    GrpcTransport& transport_;
  };

  // Owns lanes from their first byte until a link does.
  class Doorman final : public LaneOwner {
   public:
    explicit Doorman(GrpcTransport& transport) : transport_(transport) {}
    bool OnFrames(Lane& lane, const grpc::ByteBuffer& frames) override;
    void OnWritten(Lane&) override {}
    void OnBroken(Lane& lane, const absl::Status&) override;

   private:
    GrpcTransport& transport_;
  };

  struct Early {
    std::shared_ptr<Lane> lane;
    Hello hello;
  };

  absl::Status CheckSend(const std::string& peer, std::shared_ptr<Link>& link);
  std::shared_ptr<Link> Find(const std::string& name);
  std::vector<std::shared_ptr<Link>> AllLinks();
  void Admit(const std::shared_ptr<Lane>& lane, const Hello& hello);
  void AwaitIdle(milliseconds timeout);
  void SetServing(bool serving);

  LinkHost host_;
  Door door_{*this};
  const std::shared_ptr<Doorman> doorman_ = std::make_shared<Doorman>(*this);
  PrivateSocket socket_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  std::map<std::string, std::shared_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
  std::vector<Early> early_ ABSL_GUARDED_BY(mutex_);
  Mutex shutdown_mutex_;  // one Shutdown at a time
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

GrpcTransport::GrpcTransport(const GrpcOptions& options) {
  host_.options = options;
  host_.executor = std::make_shared<ThreadPool>(1, "baton-link");
  host_.timer = std::make_unique<Timer>("baton-dial");
}

GrpcTransport::~GrpcTransport() { Shutdown(milliseconds(0)); }

absl::Status GrpcTransport::Listen() {
  const GrpcOptions& options = host_.options;
  RETURN_IF_ERROR(CheckListen(options.listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetServerArguments(builder);
  const auto credentials = grpc::InsecureServerCredentials();
  const bool listens_on_unix = absl::StartsWith(options.listen, "unix:");
  HostPort tcp;
  if (!listens_on_unix) {
    ASSIGN_OR_RETURN(tcp, ParseHostPort(options.listen));
  }
  int port = -1;
  builder.AddListeningPort(options.listen, credentials, &port);
  if (options.unix_socket && !listens_on_unix) {
    ASSIGN_OR_RETURN(socket_, PrivateSocket::Make());
    builder.AddListeningPort("unix:" + socket_.path(), credentials);
  }
  builder.RegisterCallbackGenericService(&door_);
  if (options.rendezvous != nullptr) {
    builder.RegisterService(options.rendezvous->service());
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port <= 0) {
    return ListenFailure(options.listen, "gRPC cannot bind it");
  }
  SetServing(false);
  if (listens_on_unix) {
    address_ = options.listen;
    return absl::OkStatus();
  }
  tcp.port = static_cast<uint16_t>(port);
  if (!options.advertise_host.empty()) {
    tcp.host = options.advertise_host;
  } else if (IsWildcard(tcp.host)) {
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    tcp.host = name;
  }
  address_ = ToString(tcp);
  if (!socket_.empty()) absl::StrAppend(&address_, ";unix:", socket_.path());
  return absl::OkStatus();
}

void GrpcTransport::SetServing(bool serving) {
  if (auto* health = server_->GetHealthCheckService()) {
    health->SetServingStatus(serving);
  }
}

absl::Status GrpcTransport::Start(const WorkerInfo& self,
                                  MessageHandler* handler) {
  RETURN_IF_ERROR(CheckWorkerName(self.name));
  if (self.incarnation == 0 || static_cast<int32_t>(self.rank) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", self.name, " needs an incarnation other than 0 and a rank"));
  }
  std::vector<Early> early;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kNew) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the transport of worker ", self.name, " was started before"));
    }
    state_ = State::kStarted;
    host_.self = self;
    host_.gate->Open(handler);
    early.swap(early_);
  }
  for (const Early& entry : early) {
    Admit(entry.lane, entry.hello);
    entry.lane->ResumeReading();
  }
  SetServing(true);
  return absl::OkStatus();
}

std::shared_ptr<Link> GrpcTransport::Find(const std::string& name) {
  MutexLock lock(mutex_);
  auto found = links_.find(name);
  return found == links_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Link>> GrpcTransport::AllLinks() {
  std::vector<std::shared_ptr<Link>> links;
  MutexLock lock(mutex_);
  for (const auto& [name, link] : links_) links.push_back(link);
  return links;
}

void GrpcTransport::AddPeer(const WorkerInfo& peer) {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Link>& entry = links_[peer.name];
    if (entry == nullptr) entry = Link::Make(host_, peer);
    link = entry;
  }
  link->SetPeer(peer);
}

void GrpcTransport::RemovePeer(const std::string& name) {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    auto found = links_.find(name);
    if (found == links_.end()) return;
    link = std::move(found->second);
    links_.erase(found);
  }
  link->Close(
      absl::UnavailableError(absl::StrCat("worker ", name, " was removed")));
}

void GrpcTransport::Disconnect(const std::string& name) {
  if (std::shared_ptr<Link> link = Find(name)) {
    link->Break(absl::UnavailableError(absl::StrCat("the connection to worker ",
                                                    name, " was severed")),
                true);
  }
}

absl::Status GrpcTransport::CheckSend(const std::string& peer,
                                      std::shared_ptr<Link>& link) {
  MutexLock lock(mutex_);
  if (state_ == State::kNew) {
    return absl::FailedPreconditionError("Send before Start");
  }
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
  link = found->second;
  return absl::OkStatus();
}

void GrpcTransport::Send(const std::string& peer, Message message, Sent sent) {
  std::shared_ptr<Link> link;
  absl::Status status = CheckSend(peer, link);
  if (status.ok()) {
    auto outgoing =
        Outgoing::Make(std::move(message), host_.options.max_message_bytes,
                       sent, host_.executor);
    if (outgoing.ok()) {
      link->Send(*std::move(outgoing));
      return;
    }
    status = outgoing.status();
  }
  if (sent == nullptr) return;
  host_.executor->Post(
      [sent = std::move(sent), status]() mutable { sent(status); });
}

grpc::ServerGenericBidiReactor* GrpcTransport::Door::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
    void OnDone() override { delete this; }
  };
  if (context->method() != kLaneMethod) {
    return new Refusal(
        {grpc::StatusCode::UNIMPLEMENTED, "a Baton worker has no such method"});
  }
  LinkHost& host = transport_.host_;
  const size_t links = transport_.AllLinks().size();
  if (static_cast<size_t>(host.lanes.count()) > kMaxStrangers + 4 * links) {
    return new Refusal(
        {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many connections"});
  }
  const Lane::Accepted accepted = Lane::Accept(
      context, transport_.doorman_, host.options.max_message_bytes, host.lanes);
  host.timer->After(host.options.hello_timeout, [weak = accepted.lane] {
    if (auto lane = weak.lock()) lane->CloseIfSilent();
  });
  return accepted.reactor;
}

bool GrpcTransport::Doorman::OnFrames(Lane& lane,
                                      const grpc::ByteBuffer& frames) {
  Receiver::Batch batch;
  absl::StatusOr<Hello> hello = absl::InvalidArgumentError("no hello");
  absl::Status status = lane.receiver().Consume(frames, batch);
  if (status.ok() && batch.messages.empty() && batch.controls.size() == 1 &&
      batch.controls[0].kind == FrameKind::kHello) {
    hello = ParseHello(batch.controls[0].meta);
  }
  if (status.ok()) status = hello.status();
  if (!status.ok()) {
    LogWarning("a stranger's connection is closed: ", status.message());
    lane.CloseWith(Encode(HelloAnswer{
        .verdict = Verdict::kRefused,
        .text = absl::StrCat("no valid hello: ", status.message())}));
    return false;
  }
  {
    MutexLock lock(transport_.mutex_);
    if (transport_.state_ == State::kNew) {
      transport_.early_.push_back({lane.shared(), *std::move(hello)});
      return false;
    }
  }
  transport_.Admit(lane.shared(), *hello);
  return true;
}

void GrpcTransport::Doorman::OnBroken(Lane& lane, const absl::Status&) {
  MutexLock lock(transport_.mutex_);
  std::erase_if(transport_.early_, [&lane](const Early& early) {
    return early.lane.get() == &lane;
  });
}

void GrpcTransport::Admit(const std::shared_ptr<Lane>& lane,
                          const Hello& hello) {
  HelloAnswer answer = Judge(host_.options, host_.self, hello);
  if (answer.verdict == Verdict::kOk && hello.self.name == host_.self.name) {
    answer.verdict = Verdict::kRefused;
    answer.text = absl::StrCat("two workers are named ", hello.self.name);
  }
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kShutDown) {
      answer.verdict = Verdict::kShutDown;
      answer.text = absl::StrCat("worker ", host_.self.name, " has shut down");
    }
    if (answer.verdict == Verdict::kOk) {
      std::shared_ptr<Link>& entry = links_[hello.self.name];
      if (entry == nullptr) entry = Link::Make(host_, hello.self);
      link = entry;
    }
  }
  if (link != nullptr) {
    link->Accept(lane, hello);
    return;
  }
  if (answer.verdict == Verdict::kShutDown) {
    LogDebug("refused a connection: ", answer.text);
  } else {
    LogWarning("refused a connection: ", answer.text);
  }
  lane->CloseWith(Encode(answer));
}

void GrpcTransport::AwaitIdle(milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::vector<std::shared_ptr<Link>> links = AllLinks();
  const auto all_idle = [&links] {
    for (const auto& link : links) {
      if (!link->idle()) return false;
    }
    return true;
  };
  for (;;) {
    uint64_t seen;
    {
      MutexLock lock(host_.idle_mutex);
      seen = host_.idle_events;
    }
    if (all_idle()) return;
    MutexLock lock(host_.idle_mutex);
    while (host_.idle_events == seen) {
      if (!host_.idle.WaitUntil(host_.idle_mutex, deadline)) return;
    }
  }
}

void GrpcTransport::Shutdown(milliseconds timeout) {
  MutexLock one(shutdown_mutex_);
  if (std::exchange(shut_down_, true)) return;
  std::vector<Early> early;
  {
    MutexLock lock(mutex_);
    state_ = State::kShutDown;
    early.swap(early_);
  }
  if (server_ != nullptr) SetServing(false);
  host_.stopping = true;
  for (const Early& entry : early) entry.lane->Close();
  if (timeout.count() > 0) {
    for (const auto& link : AllLinks()) link->BeginGoodbye();
    AwaitIdle(timeout);
  }
  host_.gate->Close();
  for (const auto& link : AllLinks()) {
    link->Close(SendAfterShutdown());
  }
  if (host_.options.rendezvous != nullptr) host_.options.rendezvous->Close();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());
  }
  host_.lanes.AwaitNone();
  server_ = nullptr;
  socket_ = PrivateSocket();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcOptions& options) {
  auto transport = std::make_unique<GrpcTransport>(options);
  RETURN_IF_ERROR(transport->Listen());
  return transport;
}

}  // namespace baton::rpc

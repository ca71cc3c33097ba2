// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The two ends of a call to a rendezvous by gRPC: a worker's connection and the
// server.
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/channels/accepting.h"
#include "rpc/etcd/rendezvous_candidate.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"

namespace baton::rpc {

using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace internal {
namespace {

constexpr milliseconds kProbe{200};
// Between two looks at whether connecting was ended.
constexpr milliseconds kLook{50};

// Returns why the last attempt to connect failed, or OK if it did not.
absl::Status LastFailure(const std::shared_ptr<grpc::Channel>& channel,
                         const RendezvousAccess& access) {
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + kProbe);
  wire::LeaveAnswer answer;
  const grpc::Status status = wire::Rendezvous::NewStub(channel)->Leave(
      &context, wire::LeaveRequest(), &answer);
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return absl::OkStatus();
  }
  return ExplainFailure(access.security, access.name,
                        absl::UnavailableError(status.error_message()));
}

absl::Status AwaitConnected(const std::shared_ptr<grpc::Channel>& channel,
                            const RendezvousAccess& access,
                            system_clock::time_point deadline,
                            const std::atomic<bool>& ended) {
  absl::Status failure = absl::UnavailableError(
      "nobody answers there; is it started, and is the address right?");
  while (!ended) {
    const grpc_connectivity_state state = channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      absl::Status last = LastFailure(channel, access);
      if (absl::IsUnauthenticated(last)) return last;
      if (absl::StrContains(last.message(), "--tls")) failure = std::move(last);
    }
    while (!channel->WaitForStateChange(
        state, std::min(deadline, system_clock::now() + kLook))) {
      if (ended) break;
      if (system_clock::now() >= deadline) return failure;
    }
  }
  return absl::CancelledError("stopping");
}

absl::Status AtRendezvous(const std::string& address,
                          const RendezvousAccess& access,
                          const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", address,
                     ": a server that is none listens there"));
  }
  absl::Status why(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message());
  if (absl::IsUnavailable(why)) {
    why = ExplainFailure(access.security, access.name, why);
  }
  return Annotate(why, absl::StrCat("rendezvous at ", address));
}

// True for codes that gRPC may return by itself, without an answer of the
// service.
bool IsOfGrpc(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    default:
      return false;
  }
}

// Returns what the other side shows, or nothing.
std::string ProofIn(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto shown = metadata.find(kProofKey);
  if (shown == metadata.end()) return "";
  return {shown->second.data(), shown->second.size()};
}

// A connection that uses gRPC.
class GrpcConnection final : public RendezvousConnection {
 public:
  GrpcConnection(std::string address, const RendezvousAccess& access,
                 std::shared_ptr<grpc::Channel> channel)
      : address_(std::move(address)),
        access_(access),
        channel_(std::move(channel)),
        prover_(access.security.token) {}

  absl::Status Ask(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Join, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Leave, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Renew, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::ListRequest& request, wire::ListAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::List, request, answer, deadline, watch);
  }

 private:
  using Stub = wire::Rendezvous::Stub;

  template <typename Request, typename Answer>
  absl::Status Prove(grpc::Status (Stub::*call)(grpc::ClientContext*,
                                                const Request&, Answer*),
                     const Request& request, Answer* answer, Deadline deadline,
                     const Watch& watch) {
    const auto stub = wire::Rendezvous::NewStub(channel_);
    const std::string asked = prover_.has_token() ? Asked(request) : "";
    for (bool again = false;; again = true) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      if (prover_.has_token()) {
        ASSIGN_OR_RETURN(const std::string shown, prover_.Show(asked));
        context.AddMetadata(kProofKey, shown);
      }
      if (watch != nullptr && !watch([&context] { context.TryCancel(); }))
        return absl::CancelledError("stopping");
      const grpc::Status status = ((*stub).*call)(&context, request, answer);
      if (watch != nullptr) watch(nullptr);
      const std::string shown = ProofIn(context.GetServerTrailingMetadata());
      if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !again &&
          prover_.has_token() && prover_.TakeChallenge(shown)) {
        continue;
      }
      if (prover_.has_token() && !IsOfGrpc(status.error_code())) {
        RETURN_IF_ERROR(Annotate(prover_.CheckAnswer(shown),
                                 absl::StrCat("rendezvous at ", address_)));
      }
      return status.ok() ? absl::OkStatus()
                         : AtRendezvous(address_, access_, status);
    }
  }

  const std::string address_;
  const RendezvousAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  CallProver prover_;
};

absl::StatusOr<std::shared_ptr<RendezvousConnection>> Connect(
    const std::string& address, const RendezvousAccess& access,
    RendezvousConnection::Deadline deadline,
    const RendezvousConnection::Watch& watch) {
  // A worker's address may have several forms; the first is reachable from all
  // machines.
  const std::string target(*absl::StrSplit(address, ';').begin());
  if (!absl::StartsWith(target, "unix:")) {
    RETURN_IF_ERROR(Annotate(ParseHostPort(target).status(), "rendezvous"));
  }
  grpc::ChannelArguments arguments = DialArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  auto channel = SecureChannel(access.security, target, access.name, arguments);
  std::atomic<bool> ended = false;
  if (watch != nullptr && !watch([&ended] { ended = true; }))
    return absl::CancelledError("stopping");
  const absl::Status connected =
      AwaitConnected(channel, access, deadline, ended);
  if (watch != nullptr) watch(nullptr);
  RETURN_IF_ERROR(Annotate(
      connected, absl::StrCat("cannot reach the rendezvous at ", target)));
  return std::make_shared<GrpcConnection>(address, access, std::move(channel));
}

// A call whose answer may have to wait. gRPC owns it until OnDone.
class WaitingCall final : public grpc::ServerUnaryReactor {
 public:
  // `begin` is called with what answers the call.
  template <typename Begin>
  explicit WaitingCall(const Begin& begin)
      : cancel_(begin([this](const absl::Status& status) {
          Finish({static_cast<grpc::StatusCode>(status.code()),
                  std::string(status.message())});
        })) {}
  void OnCancel() override {
    if (cancel_ != nullptr) cancel_();
  }
  void OnDone() override { delete this; }

 private:
  const RendezvousGroups::Cancel cancel_;
};

}  // namespace

RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access,
                          RendezvousConnection::Watch watch) {
  if (IsEtcd(address)) return DialerByEtcd(address, access, std::move(watch));
  return [address, access,
          watch = std::move(watch)](RendezvousConnection::Deadline deadline) {
    return Connect(address, access, deadline, watch);
  };
}

// The calls of one rendezvous.
class RendezvousCalls final : public RendezvousService,
                              public wire::Rendezvous::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

 public:
  RendezvousCalls(const Security& security, int max_members,
                  MayAnswer may_answer)
      : may_answer_(std::move(may_answer)),
        groups_(max_members),
        guard_(security.token) {
    groups_.KeepReaping();
  }
  ~RendezvousCalls() override { groups_.Close(); }

  void OnLetIn(std::function<void(const std::string&)> let_in) override {
    let_in_ = std::move(let_in);
  }
  void StrikeOff(const std::string& name, const std::string& why) override {
    groups_.StrikeOff(name, why);
  }
  void Close() override { groups_.Close(); }
  grpc::Service* service() override { return this; }

  // A worker may only make requests for itself. Anybody with the cluster's
  // token may list, under any name.
  Reactor* Join(Context* context, const wire::JoinRequest* request,
                wire::JoinAnswer* answer) override {
    return Answer(*context, &request->self().name(), *request, answer);
  }
  Reactor* Leave(Context* context, const wire::LeaveRequest* request,
                 wire::LeaveAnswer* answer) override {
    return Answer(*context, &request->name(), *request, answer);
  }
  Reactor* Renew(Context* context, const wire::RenewRequest* request,
                 wire::RenewAnswer* answer) override {
    return Answer(*context, &request->name(), *request, answer);
  }
  Reactor* List(Context* context, const wire::ListRequest* request,
                wire::ListAnswer* answer) override {
    return Answer(*context, nullptr, *request, answer);
  }

 private:
  // `worker` is who the caller must be; null: anybody.
  template <typename Request, typename Response>
  Reactor* Answer(Context& context, const std::string* worker,
                  const Request& request, Response* answer) {
    absl::Status known = may_answer_();
    if (known.ok()) known = CheckProof(context, request);
    if (known.ok() && worker != nullptr) {
      known = CheckCaller(context, *worker);
      if (known.ok()) let_in_(context.peer());
    }
    return new WaitingCall([&](RendezvousGroups::Done done) {
      if (!known.ok()) {
        done(known);
        return RendezvousGroups::Cancel();
      }
      return groups_.Handle(
          request, answer,
          [this, done = std::move(done)](const absl::Status& status) {
            const absl::Status may = may_answer_();
            done(may.ok() ? status : may);
          });
    });
  }

  // Checks that the caller knows the token.
  absl::Status CheckProof(Context& context,
                          const google::protobuf::MessageLite& request) {
    std::string answer;
    absl::Status status =
        guard_.Check(ProofIn(context.client_metadata()), Asked(request),
                     CallGuard::Clock::now(), &answer);
    if (!answer.empty()) context.AddTrailingMetadata(kProofKey, answer);
    return status;
  }

  const MayAnswer may_answer_;
  RendezvousGroups groups_;
  std::function<void(const std::string&)> let_in_ = [](const std::string&) {};
  CallGuard guard_;
};

}  // namespace internal

std::unique_ptr<RendezvousService> RendezvousService::Make(
    const Security& security, int max_members, MayAnswer may_answer) {
  return std::make_unique<internal::RendezvousCalls>(security, max_members,
                                                     std::move(may_answer));
}

namespace {

// The time a new connection has until its worker must be authenticated.
constexpr milliseconds kAuthenticationTime{20'000};

}  // namespace

RendezvousServer::RendezvousServer(const Security& security, int max_members,
                                   MayAnswer may_answer)
    : service_(RendezvousService::Make(security, max_members,
                                       std::move(may_answer))),
      acceptor_(std::make_shared<Acceptor>(kAuthenticationTime)) {}

RendezvousServer::~RendezvousServer() {
  service_->Close();
  acceptor_->Stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Make(
    const std::string& listen, const Security& security, int max_members,
    MayAnswer may_answer) {
  std::unique_ptr<RendezvousServer> made(
      new RendezvousServer(security, max_members, std::move(may_answer)));
  RETURN_IF_ERROR(made->Listen(listen, security));
  return made;
}

absl::Status RendezvousServer::Listen(const std::string& listen,
                                      const Security& security) {
  service_->OnLetIn(
      [this](const std::string& peer) { acceptor_->LetIn(peer); });
  ASSIGN_OR_RETURN(HostPort address, ParseHostPort(listen));
  RETURN_IF_ERROR(
      CheckExposure(security, "the rendezvous would listen on", listen));
  grpc::ServerBuilder builder;
  SetServerArguments(builder);
  RaiseDescriptorLimit();
  ASSIGN_OR_RETURN(address.port, acceptor_->Listen(builder, listen, security));
  builder.RegisterService(service_->service());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return ListenFailure(listen, "gRPC makes no server");
  RETURN_IF_ERROR(acceptor_->Start());
  address_ = ToString(address);
  return absl::OkStatus();
}

}  // namespace baton::rpc

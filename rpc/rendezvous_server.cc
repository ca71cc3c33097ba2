// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/channels/accepting.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/rendezvous_messages.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"

namespace baton::rpc {

using std::chrono::milliseconds;

namespace internal {
namespace {

using Clock = RendezvousGroups::Clock;

// The interval at which expired leases are looked for.
constexpr milliseconds kReapInterval{100};
constexpr milliseconds kLongestListen{60'000};

// Returns the place that a worker asks to have back.
absl::StatusOr<JoinOptions> SeatIn(const wire::RenewRequest& request) {
  ASSIGN_OR_RETURN(JoinOptions seat, FromWire(request.seat()));
  seat.cluster = request.cluster();
  seat.self.name = request.name();
  seat.self.incarnation = request.incarnation();
  return seat;
}

}  // namespace

void RendezvousHandlers::ReapLater() {
  timer_.After(kReapInterval, [this] {
    groups_.Reap(Clock::now(), kReapInterval);
    ReapLater();
  });
}

RendezvousHandlers::Cancel RendezvousHandlers::Handle(
    const wire::JoinRequest& request, wire::JoinAnswer* answer, Done done) {
  const auto options = FromWire(request);
  if (!options.ok()) {
    done(options.status());
    return nullptr;
  }
  const std::string& cluster = options->cluster;
  const WorkerInfo& self = options->self;
  const Timer::Id timeout =
      timer_.After(options->timeout,
                   [this, cluster, self] { groups_.Expire(cluster, self); });
  groups_.Enter(*options, [this, timeout, answer, done = std::move(done)](
                              const RendezvousGroups::Result& result) {
    timer_.Cancel(timeout);
    if (result.ok()) {
      answer->set_version((*result)->version);
      ToWire((*result)->workers, answer->mutable_members());
    }
    done(result.status());
  });
  return [this, cluster, self] { groups_.Cancel(cluster, self); };
}

RendezvousHandlers::Cancel RendezvousHandlers::Handle(
    const wire::RenewRequest& request, wire::RenewAnswer* answer, Done done) {
  if (request.has_seat()) {
    const auto seat = SeatIn(request);
    const absl::Status back =
        seat.ok() ? groups_.TakeBack(*seat, request.version()) : seat.status();
    if (!back.ok()) {
      done(back);
      return nullptr;
    }
  }
  const milliseconds wait(
      std::clamp<int64_t>(request.wait_ms(), 0, kLongestListen.count()));
  const auto until = Clock::now() + wait;
  Cancel end = [this, cluster = request.cluster(), name = request.name(),
                incarnation = request.incarnation()] {
    groups_.EndListen(cluster, name, incarnation);
  };
  const Timer::Id timeout = timer_.After(wait, end);
  groups_.Renew(request.cluster(), request.name(), request.incarnation(),
                request.version(), until,
                [this, timeout, answer, done = std::move(done)](
                    const absl::StatusOr<MembershipChange>& change) {
                  timer_.Cancel(timeout);
                  if (change.ok()) ToWire(*change, *answer);
                  done(change.status());
                });
  return end;
}

RendezvousHandlers::Cancel RendezvousHandlers::Handle(
    const wire::LeaveRequest& request, wire::LeaveAnswer*, Done done) {
  done(groups_.Leave(request.cluster(), request.name(), request.incarnation()));
  return nullptr;
}

RendezvousHandlers::Cancel RendezvousHandlers::Handle(
    const wire::ListRequest& request, wire::ListAnswer* answer, Done done) {
  const auto workers = groups_.List(request.cluster());
  if (workers.ok()) ToWire(*workers, answer->mutable_members());
  done(workers.status());
  return nullptr;
}

}  // namespace internal

namespace {

using internal::RendezvousHandlers;

// The time a new connection has until its worker must be authenticated.
constexpr milliseconds kAuthenticationTime{20'000};

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
  const RendezvousHandlers::Cancel cancel_;
};

}  // namespace

namespace internal {

// The calls of one rendezvous.
class RendezvousCalls final : public wire::Rendezvous::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

 public:
  RendezvousCalls(const Security& security, int max_members,
                  MayAnswer may_answer)
      : may_answer_(std::move(may_answer)),
        handlers_(max_members),
        guard_(security.token) {}

  RendezvousGroups& groups() { return handlers_.groups(); }
  void OnLetIn(std::function<void(const std::string&)> let_in) {
    let_in_ = std::move(let_in);
  }

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
    return new WaitingCall([&](RendezvousHandlers::Done done) {
      if (!known.ok()) {
        done(known);
        return RendezvousHandlers::Cancel();
      }
      return handlers_.Handle(
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
    const auto& metadata = context.client_metadata();
    const auto shown = metadata.find(kProofKey);
    std::string answer;
    absl::Status status = guard_.Check(
        shown == metadata.end()
            ? ""
            : std::string(shown->second.data(), shown->second.size()),
        Asked(request), CallGuard::Clock::now(), &answer);
    if (!answer.empty()) context.AddTrailingMetadata(kProofKey, answer);
    return status;
  }

  const MayAnswer may_answer_;
  RendezvousHandlers handlers_;
  std::function<void(const std::string&)> let_in_ = [](const std::string&) {};
  CallGuard guard_;
};

}  // namespace internal

RendezvousService::RendezvousService(const Security& security, int max_members,
                                     MayAnswer may_answer)
    : calls_(std::make_unique<internal::RendezvousCalls>(
          security, max_members, std::move(may_answer))) {}

RendezvousService::~RendezvousService() { Close(); }

void RendezvousService::OnLetIn(
    std::function<void(const std::string& peer)> let_in) {
  calls_->OnLetIn(std::move(let_in));
}

void RendezvousService::StrikeOff(const std::string& name,
                                  const std::string& why) {
  calls_->groups().StrikeOff(name, why);
}

void RendezvousService::Close() { calls_->groups().Close(); }

grpc::Service* RendezvousService::service() { return calls_.get(); }

RendezvousServer::RendezvousServer(const Security& security, int max_members,
                                   MayAnswer may_answer)
    : service_(security, max_members, std::move(may_answer)),
      acceptor_(std::make_shared<Acceptor>(kAuthenticationTime)) {}

RendezvousServer::~RendezvousServer() {
  service_.Close();
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
  service_.OnLetIn([this](const std::string& peer) { acceptor_->LetIn(peer); });
  ASSIGN_OR_RETURN(HostPort address, ParseHostPort(listen));
  RETURN_IF_ERROR(
      CheckExposure(security, "the rendezvous would listen on", listen));
  grpc::ServerBuilder builder;
  SetServerArguments(builder);
  RaiseDescriptorLimit();
  ASSIGN_OR_RETURN(address.port, acceptor_->Listen(builder, listen, security));
  builder.RegisterService(service_.service());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return ListenFailure(listen, "gRPC makes no server");
  RETURN_IF_ERROR(acceptor_->Start());
  address_ = ToString(address);
  return absl::OkStatus();
}

}  // namespace baton::rpc

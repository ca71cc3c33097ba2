// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "core/timer.h"
#include "rpc/call_proof.h"
#include "rpc/channels/descriptors.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/rendezvous_wire.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_args.h"
#include "rpc/transports/credentials.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// Between two looks at the leases.
constexpr milliseconds kReapInterval{100};
constexpr milliseconds kLongestListen{60'000};
// Until who came has shown that it knows the token.
constexpr milliseconds kStrangerTime{20'000};

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

// One Join that waits. gRPC owns it until OnDone.
class JoinCall final : public grpc::ServerUnaryReactor {
 public:
  JoinCall(std::shared_ptr<RendezvousGroups> groups, Timer& timer,
           const JoinOptions& options, wire::JoinAnswer* answer)
      : groups_(std::move(groups)),
        timer_(timer),
        cluster_(options.cluster),
        self_(options.self) {
    timeout_ = timer_.After(
        options.timeout, [groups = groups_, cluster = cluster_, self = self_] {
          groups->Expire(cluster, self);
        });
    groups_->Enter(options,
                   [this, answer](const RendezvousGroups::Result& result) {
                     if (result.ok()) {
                       answer->set_version((*result)->version);
                       for (const WorkerInfo& member : (*result)->workers) {
                         internal::ToWire(member, *answer->add_members());
                       }
                     }
                     Finish(ToGrpc(result.status()));
                   });
  }
  void OnCancel() override { groups_->Cancel(cluster_, self_); }
  void OnDone() override {
    timer_.Cancel(timeout_);
    delete this;
  }

 private:
  const std::shared_ptr<RendezvousGroups> groups_;
  Timer& timer_;
  Timer::Id timeout_ = 0;
  const std::string cluster_;
  const WorkerInfo self_;
};

// One Renew, which may wait for a change. gRPC owns it until OnDone.
class RenewCall final : public grpc::ServerUnaryReactor {
 public:
  using Clock = RendezvousGroups::Clock;

  RenewCall(std::shared_ptr<RendezvousGroups> groups, Timer& timer,
            const wire::RenewRequest& request, wire::RenewAnswer* answer)
      : groups_(std::move(groups)),
        timer_(timer),
        cluster_(request.cluster()),
        name_(request.name()),
        incarnation_(request.incarnation()) {
    const milliseconds wait(
        std::clamp<int64_t>(request.wait_ms(), 0, kLongestListen.count()));
    const Clock::time_point until = Clock::now() + wait;
    timeout_ = timer_.After(wait, [groups = groups_, cluster = cluster_,
                                   name = name_, incarnation = incarnation_] {
      groups->EndListen(cluster, name, incarnation);
    });
    groups_->Listen(cluster_, name_, incarnation_, request.version(), until,
                    [this, answer](const auto& change) {
                      if (change.ok()) internal::ToWire(*change, *answer);
                      Finish(ToGrpc(change.status()));
                    });
  }
  void OnCancel() override {
    groups_->EndListen(cluster_, name_, incarnation_);
  }
  void OnDone() override {
    timer_.Cancel(timeout_);
    delete this;
  }

 private:
  const std::shared_ptr<RendezvousGroups> groups_;
  Timer& timer_;
  Timer::Id timeout_ = 0;
  const std::string cluster_;
  const std::string name_;
  const uint64_t incarnation_;
};

class Service final : public wire::Rendezvous::CallbackService {
 public:
  Service(std::shared_ptr<RendezvousGroups> groups, const Security& security)
      : groups_(std::move(groups)), guard_(security.token) {
    ReapLater();
  }
  ~Service() override { timer_.Stop(); }

  void OnLetIn(std::function<void(const std::string&)> let_in) {
    let_in_ = std::move(let_in);
  }

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const wire::JoinRequest* request,
                                 wire::JoinAnswer* answer) override {
    const absl::Status known =
        Check(*context, *request, request->self().name());
    if (!known.ok()) return Answer(*context, known);
    let_in_(context->peer());
    const auto options = internal::FromWire(*request);
    if (!options.ok()) return Answer(*context, options.status());
    return new JoinCall(groups_, timer_, *options, answer);
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const wire::LeaveRequest* request,
                                  wire::LeaveAnswer*) override {
    absl::Status status = Check(*context, *request, request->name());
    if (status.ok()) {
      status = groups_->Leave(request->cluster(), request->name(),
                              request->incarnation());
    }
    return Answer(*context, status);
  }

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const wire::RenewRequest* request,
                                  wire::RenewAnswer* answer) override {
    const absl::Status known = Check(*context, *request, request->name());
    if (!known.ok()) return Answer(*context, known);
    let_in_(context->peer());
    if (request->has_seat()) {
      auto seat = internal::FromWire(request->seat());
      if (!seat.ok()) return Answer(*context, seat.status());
      seat->cluster = request->cluster();
      seat->self.name = request->name();
      seat->self.incarnation = request->incarnation();
      const absl::Status back = groups_->TakeBack(*seat, request->version());
      if (!back.ok()) return Answer(*context, back);
    }
    return new RenewCall(groups_, timer_, *request, answer);
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const wire::ListRequest* request,
                                 wire::ListAnswer* answer) override {
    // Anybody of the cluster may look, whatever the name.
    if (const absl::Status known = CheckProof(*context, *request); !known.ok())
      return Answer(*context, known);
    const auto workers = groups_->List(request->cluster());
    if (workers.ok()) {
      for (const WorkerInfo& worker : *workers) {
        internal::ToWire(worker, *answer->add_members());
      }
    }
    return Answer(*context, workers.status());
  }

 private:
  // A worker speaks for itself alone.
  absl::Status Check(grpc::CallbackServerContext& context,
                     const google::protobuf::MessageLite& request,
                     const std::string& worker) {
    RETURN_IF_ERROR(CheckProof(context, request));
    return CheckCaller(context, worker);
  }
  absl::Status CheckProof(grpc::CallbackServerContext& context,
                          const google::protobuf::MessageLite& request) {
    const auto& metadata = context.client_metadata();
    const auto shown = metadata.find(internal::kProofKey);
    std::string answer;
    absl::Status status = guard_.Check(
        shown == metadata.end()
            ? ""
            : std::string(shown->second.data(), shown->second.size()),
        internal::Asked(request), internal::CallGuard::Clock::now(), &answer);
    if (!answer.empty())
      context.AddTrailingMetadata(internal::kProofKey, answer);
    return status;
  }
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  void ReapLater() {
    timer_.After(kReapInterval, [this] {
      groups_->Reap(RendezvousGroups::Clock::now(), kReapInterval);
      ReapLater();
    });
  }

  const std::shared_ptr<RendezvousGroups> groups_;
  std::function<void(const std::string&)> let_in_ = [](const std::string&) {};
  internal::CallGuard guard_;
  Timer timer_{"baton-join"};
};

class OwnServer final : public RendezvousServer {
 public:
  explicit OwnServer(const Security& security)
      : security_(security), service_(security) {}
  ~OwnServer() override {
    service_.Close();
    acceptor_->Stop();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& listen) {
    HostPort address;
    ASSIGN_OR_RETURN(address, ParseHostPort(listen));
    RETURN_IF_ERROR(CheckListen(listen));
    RETURN_IF_ERROR(
        CheckExposure(security_, "the rendezvous would listen on", listen));
    grpc::ServerBuilder builder;
    SetServerArguments(builder);
    RaiseDescriptorLimit();
    ASSIGN_OR_RETURN(
        address.port,
        acceptor_->Listen(builder, listen, PortCredentials(security_, listen)));
    service_.OnLetIn(
        [this](const std::string& peer) { acceptor_->LetIn(peer); });
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr)
      return ListenFailure(listen, "gRPC makes no server");
    address_ = ToString(address);
    return acceptor_->Start();
  }
  std::string address() const override { return address_; }
  void StrikeOff(const std::string& name, const std::string& why) override {
    service_.StrikeOff(name, why);
  }

 private:
  const Security security_;
  RendezvousService service_;
  const std::shared_ptr<Acceptor> acceptor_ =
      std::make_shared<Acceptor>(kStrangerTime);
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

RendezvousService::RendezvousService(const Security& security)
    : groups_(std::make_shared<RendezvousGroups>()),
      service_(std::make_unique<Service>(groups_, security)) {}

RendezvousService::~RendezvousService() { Close(); }

void RendezvousService::OnLetIn(
    std::function<void(const std::string& peer)> let_in) {
  static_cast<Service&>(*service_).OnLetIn(std::move(let_in));
}

void RendezvousService::StrikeOff(const std::string& name,
                                  const std::string& why) {
  groups_->StrikeOff(name, why);
}

void RendezvousService::Close() { groups_->Close(); }

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Make(
    const std::string& listen, const Security& security) {
  auto server = std::make_unique<OwnServer>(security);
  RETURN_IF_ERROR(server->Listen(listen));
  return server;
}

}  // namespace baton::rpc

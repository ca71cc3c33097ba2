// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "core/timer.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_args.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLongestWaitMs = 24 * 3600 * 1000;
// Between two looks at the leases.
constexpr milliseconds kReapInterval{100};

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

WorkerInfo FromWire(const wire::Member& in) {
  return {in.name(), Rank{in.rank()}, in.incarnation(), in.address()};
}

void ToWire(const WorkerInfo& info, wire::Member& out) {
  out.set_name(info.name);
  out.set_rank(static_cast<int32_t>(info.rank));
  out.set_incarnation(info.incarnation);
  out.set_address(info.address);
}

// One Join that waits. gRPC owns it until OnDone.
class JoinCall final : public grpc::ServerUnaryReactor {
 public:
  JoinCall(std::shared_ptr<RendezvousGroups> groups, Timer& timer,
           const wire::JoinRequest& request, wire::JoinAnswer* answer)
      : groups_(std::move(groups)),
        timer_(timer),
        cluster_(request.cluster()),
        self_(FromWire(request.self())) {
    JoinOptions options{.cluster = cluster_,
                        .self = self_,
                        .wanted_rank = request.self().rank(),
                        .world_size = request.world_size()};
    options.expected.assign(request.expected().begin(),
                            request.expected().end());
    options.timeout = milliseconds(
        std::clamp<int64_t>(request.timeout_ms(), 1, kLongestWaitMs));
    options.lease = milliseconds(
        std::clamp<int64_t>(request.lease_ms(), 0, kLongestWaitMs));
    timeout_ = timer_.After(
        options.timeout, [groups = groups_, cluster = cluster_, self = self_] {
          groups->Expire(cluster, self);
        });
    groups_->Enter(options,
                   [this, answer](const RendezvousGroups::Result& result) {
                     if (result.ok()) {
                       for (const WorkerInfo& member : *result) {
                         ToWire(member, *answer->add_members());
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

class Service final : public wire::Rendezvous::CallbackService {
 public:
  explicit Service(std::shared_ptr<RendezvousGroups> groups)
      : groups_(std::move(groups)) {
    ReapLater();
  }
  ~Service() override { timer_.Stop(); }

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext*,
                                 const wire::JoinRequest* request,
                                 wire::JoinAnswer* answer) override {
    return new JoinCall(groups_, timer_, *request, answer);
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const wire::LeaveRequest* request,
                                  wire::LeaveAnswer*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(groups_->Leave(request->cluster(), request->name(),
                                          request->incarnation())));
    return reactor;
  }

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const wire::RenewRequest* request,
                                  wire::RenewAnswer* answer) override {
    const absl::StatusOr<Membership> membership =
        groups_->Renew(request->cluster(), request->name(),
                       request->incarnation(), request->version());
    if (membership.ok()) {
      answer->set_version(membership->version);
      for (const WorkerInfo& worker : membership->workers) {
        ToWire(worker, *answer->add_members());
      }
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(membership.status()));
    return reactor;
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const wire::ListRequest* request,
                                 wire::ListAnswer* answer) override {
    const RendezvousGroups::Result workers = groups_->List(request->cluster());
    if (workers.ok()) {
      for (const WorkerInfo& worker : *workers) {
        ToWire(worker, *answer->add_members());
      }
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(workers.status()));
    return reactor;
  }

 private:
  void ReapLater() {
    timer_.After(kReapInterval, [this] {
      groups_->Reap(RendezvousGroups::Clock::now(), kReapInterval);
      ReapLater();
    });
  }

  const std::shared_ptr<RendezvousGroups> groups_;
  Timer timer_{"baton-join"};
};

class OwnServer final : public RendezvousServer {
 public:
  ~OwnServer() override {
    service_.Close();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& listen) {
    HostPort address;
    ASSIGN_OR_RETURN(address, ParseHostPort(listen));
    RETURN_IF_ERROR(CheckListen(listen));
    grpc::ServerBuilder builder;
    SetServerArguments(builder);
    int port = 0;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port <= 0)
      return ListenFailure(listen, "gRPC cannot bind it");
    address.port = static_cast<uint16_t>(port);
    address_ = ToString(address);
    return absl::OkStatus();
  }
  std::string address() const override { return address_; }

 private:
  RendezvousService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

RendezvousService::RendezvousService()
    : groups_(std::make_shared<RendezvousGroups>()),
      service_(std::make_unique<Service>(groups_)) {}

RendezvousService::~RendezvousService() { Close(); }

void RendezvousService::Close() { groups_->Close(); }

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Make(
    const std::string& listen) {
  auto server = std::make_unique<OwnServer>();
  RETURN_IF_ERROR(server->Listen(listen));
  return server;
}

}  // namespace baton::rpc

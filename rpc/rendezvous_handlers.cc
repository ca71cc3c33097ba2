// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_handlers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/status.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_wire.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

// The interval at which expired leases are looked for.
constexpr milliseconds kReapInterval{100};
constexpr milliseconds kLongestListen{60'000};

class JoinCall final : public RendezvousHandlers::Call {
 public:
  JoinCall(std::shared_ptr<RendezvousGroups> groups, Timer& timer,
           const JoinOptions& options, wire::JoinAnswer* answer,
           RendezvousHandlers::Done done)
      : groups_(std::move(groups)),
        timer_(timer),
        cluster_(options.cluster),
        self_(options.self),
        timeout_(
            timer_.After(options.timeout,
                         [groups = groups_, cluster = cluster_, self = self_] {
                           groups->Expire(cluster, self);
                         })) {
    groups_->Enter(options, [answer, done = std::move(done)](
                                const RendezvousGroups::Result& result) {
      if (result.ok()) {
        answer->set_version((*result)->version);
        for (const WorkerInfo& member : (*result)->workers) {
          ToWire(member, *answer->add_members());
        }
      }
      done(result.status());
    });
  }
  ~JoinCall() override { timer_.Cancel(timeout_); }
  void Cancel() override { groups_->Cancel(cluster_, self_); }

 private:
  const std::shared_ptr<RendezvousGroups> groups_;
  Timer& timer_;
  const std::string cluster_;
  const WorkerInfo self_;
  const Timer::Id timeout_;
};

class RenewCall final : public RendezvousHandlers::Call {
 public:
  using Clock = RendezvousGroups::Clock;

  RenewCall(std::shared_ptr<RendezvousGroups> groups, Timer& timer,
            const wire::RenewRequest& request, wire::RenewAnswer* answer,
            RendezvousHandlers::Done done)
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
                    [answer, done = std::move(done)](const auto& change) {
                      if (change.ok()) ToWire(*change, *answer);
                      done(change.status());
                    });
  }
  ~RenewCall() override { timer_.Cancel(timeout_); }
  void Cancel() override { groups_->EndListen(cluster_, name_, incarnation_); }

 private:
  const std::shared_ptr<RendezvousGroups> groups_;
  Timer& timer_;
  Timer::Id timeout_ = 0;
  const std::string cluster_;
  const std::string name_;
  const uint64_t incarnation_;
};

}  // namespace

RendezvousHandlers::RendezvousHandlers(std::shared_ptr<RendezvousGroups> groups)
    : groups_(std::move(groups)) {
  ReapLater();
}

RendezvousHandlers::~RendezvousHandlers() { timer_.Stop(); }

void RendezvousHandlers::ReapLater() {
  timer_.After(kReapInterval, [this] {
    groups_->Reap(RendezvousGroups::Clock::now(), kReapInterval);
    ReapLater();
  });
}

std::unique_ptr<RendezvousHandlers::Call> RendezvousHandlers::Join(
    const wire::JoinRequest& request, wire::JoinAnswer* answer, Done done) {
  const auto options = FromWire(request);
  if (!options.ok()) {
    done(options.status());
    return nullptr;
  }
  return std::make_unique<JoinCall>(groups_, timer_, *options, answer,
                                    std::move(done));
}

std::unique_ptr<RendezvousHandlers::Call> RendezvousHandlers::Renew(
    const wire::RenewRequest& request, wire::RenewAnswer* answer, Done done) {
  absl::Status back;
  if (request.has_seat()) {
    auto seat = FromWire(request.seat());
    back = seat.status();
    if (seat.ok()) {
      seat->cluster = request.cluster();
      seat->self.name = request.name();
      seat->self.incarnation = request.incarnation();
      back = groups_->TakeBack(*seat, request.version());
    }
  }
  if (!back.ok()) {
    done(back);
    return nullptr;
  }
  return std::make_unique<RenewCall>(groups_, timer_, request, answer,
                                     std::move(done));
}

absl::Status RendezvousHandlers::Leave(const wire::LeaveRequest& request) {
  return groups_->Leave(request.cluster(), request.name(),
                        request.incarnation());
}

absl::Status RendezvousHandlers::List(const wire::ListRequest& request,
                                      wire::ListAnswer* answer) {
  ASSIGN_OR_RETURN(const std::vector<WorkerInfo> workers,
                   groups_->List(request.cluster()));
  for (const WorkerInfo& worker : workers) {
    ToWire(worker, *answer->add_members());
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc::internal

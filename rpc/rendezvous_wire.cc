// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_wire.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "rpc/rendezvous.pb.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLongestWaitMs = 24 * 3600 * 1000;

absl::StatusOr<WorkerInfo> AsItCame(const wire::Member& in) {
  ASSIGN_OR_RETURN(const Compute compute, Compute::Parse(in.compute()));
  return WorkerInfo{in.name(), Rank{in.rank()}, in.incarnation(), in.address(),
                    compute};
}

}  // namespace

absl::StatusOr<JoinOptions> FromWire(const wire::JoinRequest& in) {
  ASSIGN_OR_RETURN(const WorkerInfo self, AsItCame(in.self()));
  JoinOptions options{.cluster = in.cluster(),
                      .self = self,
                      .wanted_rank = in.self().rank(),
                      .world_size = in.world_size(),
                      .listens = in.listens()};
  options.expected.assign(in.expected().begin(), in.expected().end());
  options.timeout =
      milliseconds(std::clamp<int64_t>(in.timeout_ms(), 1, kLongestWaitMs));
  options.lease =
      milliseconds(std::clamp<int64_t>(in.lease_ms(), 0, kLongestWaitMs));
  return options;
}

absl::StatusOr<WorkerInfo> FromWire(const wire::Member& in) {
  RETURN_IF_ERROR(CheckWorkerName(in.name()));
  return AsItCame(in);
}

void ToWire(const WorkerInfo& info, wire::Member& out) {
  out.set_name(info.name);
  out.set_rank(static_cast<int32_t>(info.rank));
  out.set_incarnation(info.incarnation);
  out.set_address(info.address);
  out.set_compute(info.compute.ToString());
}

absl::StatusOr<MembershipChange> FromWire(const wire::RenewAnswer& in) {
  MembershipChange change{.version = in.version(), .whole = in.whole()};
  for (const wire::Member& member : in.members()) {
    ASSIGN_OR_RETURN(WorkerInfo worker, FromWire(member));
    change.joined.push_back(std::move(worker));
  }
  for (const wire::Departure& gone : in.departed()) {
    change.departed.push_back(
        {gone.name(), gone.incarnation(), gone.lost(), gone.why()});
  }
  return change;
}

void ToWire(const MembershipChange& change, wire::RenewAnswer& out) {
  out.set_version(change.version);
  out.set_whole(change.whole);
  for (const WorkerInfo& worker : change.joined) {
    ToWire(worker, *out.add_members());
  }
  for (const MembershipChange::Departed& gone : change.departed) {
    wire::Departure& departed = *out.add_departed();
    departed.set_name(gone.name);
    departed.set_incarnation(gone.incarnation);
    departed.set_lost(gone.lost);
    departed.set_why(gone.why);
  }
}

void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out) {
  out.set_cluster(options.cluster);
  ToWire(options.self, *out.mutable_self());
  out.mutable_self()->set_rank(rank);
  out.set_world_size(options.world_size);
  out.set_lease_ms(options.lease.count());
  out.set_listens(options.listens);
  out.mutable_expected()->Assign(options.expected.begin(),
                                 options.expected.end());
}

}  // namespace baton::rpc::internal

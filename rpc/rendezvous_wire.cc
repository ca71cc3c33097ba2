// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_wire.h"

#include <algorithm>

#include "core/status.h"
#include "rpc/rendezvous.pb.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLongestWaitMs = 24 * 3600 * 1000;

WorkerInfo AsItCame(const wire::Member& in) {
  return {in.name(), Rank{in.rank()}, in.incarnation(), in.address()};
}

}  // namespace

JoinOptions FromWire(const wire::JoinRequest& in) {
  JoinOptions options{.cluster = in.cluster(),
                      .self = AsItCame(in.self()),
                      .wanted_rank = in.self().rank(),
                      .world_size = in.world_size()};
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
}

}  // namespace baton::rpc::internal

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"

// What a rendezvous and its callers make of each other's messages. Nothing in
// them is trusted: times are cut to what can be counted with; names, ranks and
// addresses of a request are checked by RendezvousGroups.
namespace baton::rpc {

namespace wire {
class JoinRequest;
class Member;
class RenewAnswer;
}  // namespace wire

namespace internal {

// InvalidArgument for what is no declaration of Compute, and, except in a
// JoinRequest, which internal::CheckJoin sees to, for a name that is none.
absl::StatusOr<JoinOptions> FromWire(const wire::JoinRequest& in);
absl::StatusOr<WorkerInfo> FromWire(const wire::Member& in);
void ToWire(const WorkerInfo& info, wire::Member& out);
absl::StatusOr<MembershipChange> FromWire(const wire::RenewAnswer& in);
void ToWire(const MembershipChange& change, wire::RenewAnswer& out);
// With `rank` as that which it wants or has.
void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out);

}  // namespace internal
}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"

// Conversions between wire messages and the types of rpc/rendezvous.h. Messages
// are not trusted: times are clamped to a safe range; RendezvousGroups checks
// the names, ranks and addresses of a request.
namespace baton::rpc {

namespace wire {
class JoinRequest;
class Member;
class RenewAnswer;
}  // namespace wire

namespace internal {

// Return InvalidArgument for an invalid Compute declaration and for an invalid
// worker name. The names in a JoinRequest are checked by internal::CheckJoin
// instead.
absl::StatusOr<JoinOptions> FromWire(const wire::JoinRequest& in);
absl::StatusOr<WorkerInfo> FromWire(const wire::Member& in);
void ToWire(const WorkerInfo& info, wire::Member& out);
absl::StatusOr<MembershipChange> FromWire(const wire::RenewAnswer& in);
void ToWire(const MembershipChange& change, wire::RenewAnswer& out);
// `rank` is the rank that the worker wants or has.
void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out);

}  // namespace internal
}  // namespace baton::rpc

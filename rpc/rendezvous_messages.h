// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}  // namespace google::protobuf

// What workers and a rendezvous tell each other: conversions between messages
// (rpc/rendezvous.proto) and the types of rpc/rendezvous.h, and the errors with
// which a rendezvous refuses workers.
namespace baton::rpc {

namespace wire {
class JoinAnswer;
class JoinRequest;
class LeaveAnswer;
class LeaveRequest;
class ListAnswer;
class ListRequest;
class Member;
class RenewAnswer;
class RenewRequest;
}  // namespace wire

namespace internal {

using WireMembers = google::protobuf::RepeatedPtrField<wire::Member>;

// Messages are not trusted. FromWire clamps times to a safe range, and returns
// InvalidArgument for an invalid Compute declaration and for an invalid name in
// a list of members. CheckJoin checks the rest of a JoinRequest.
absl::StatusOr<std::vector<WorkerInfo>> FromWire(const WireMembers& in);
void ToWire(const std::vector<WorkerInfo>& workers, WireMembers* out);
absl::StatusOr<MembershipChange> FromWire(const wire::RenewAnswer& in);
void ToWire(const MembershipChange& change, wire::RenewAnswer& out);
absl::StatusOr<JoinOptions> FromWire(const wire::JoinRequest& in);
// `rank` is the rank that the worker wants or has.
void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out);

// Returns InvalidArgument for options that are invalid by themselves.
absl::Status CheckJoin(const JoinOptions& options);
// Returns ResourceExhausted where a rendezvous that admits `max_members` (0:
// any number) waits in vain for so many workers.
absl::Status CheckWorldSize(const JoinOptions& options, int max_members);
absl::Status NoRoom(const JoinOptions& options, int max_members);
absl::Status TwoOfOneName(const std::string& name);
absl::Status TooLateOrTwice(const JoinOptions& options, size_t members);
// The error for one who asks for the members of a cluster that has none: while
// `waiting` wait for others of it, and the clusters `met` have members.
absl::Status HasNotMet(const std::string& cluster,
                       const std::vector<JoinOptions>& waiting,
                       const std::vector<std::string>& met);
// The error for a worker that timed out when `workers`, including itself, had
// come.
absl::Status SomeAreMissing(const JoinOptions& options,
                            const std::vector<JoinOptions>& workers);

}  // namespace internal
}  // namespace baton::rpc

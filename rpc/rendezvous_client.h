// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"

namespace baton::rpc {

namespace wire {
class JoinAnswer;
class JoinRequest;
class LeaveAnswer;
class LeaveRequest;
class ListAnswer;
class ListRequest;
class RenewAnswer;
class RenewRequest;
}  // namespace wire

namespace internal {

// A worker's connection to its rendezvous, for one call at a time. Errors name
// the rendezvous. Thread-compatible.
class RendezvousConnection {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // Called before a call begins, with a function that may be called on any
  // thread to end the call early. Called with null after the call has ended. If
  // it returns false before the call begins, the call ends with Cancelled.
  using Watch = std::function<bool(std::function<void()> end)>;

  virtual ~RendezvousConnection() = default;
  virtual absl::Status Ask(const wire::JoinRequest& request,
                           wire::JoinAnswer* answer, Deadline deadline) = 0;
  virtual absl::Status Ask(const wire::LeaveRequest& request,
                           wire::LeaveAnswer* answer, Deadline deadline) = 0;
  virtual absl::Status Ask(const wire::RenewRequest& request,
                           wire::RenewAnswer* answer, Deadline deadline,
                           const Watch& watch) = 0;
  virtual absl::Status Ask(const wire::ListRequest& request,
                           wire::ListAnswer* answer, Deadline deadline) = 0;
};

// Connects to one rendezvous. Returns Unavailable if nothing answers there by
// `deadline`, and Unauthenticated at once if the two sides do not agree on TLS.
using RendezvousDialer =
    std::function<absl::StatusOr<std::shared_ptr<RendezvousConnection>>(
        RendezvousConnection::Deadline deadline)>;

// Returns a dialer that uses gRPC. If there is a token, each call proves that
// the worker knows it, and answers are accepted only from a rendezvous that
// proves the same.
RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access);

// Like Join (rpc/rendezvous.h), with a connection made by `dial`. `address` is
// for messages.
absl::StatusOr<Membership> JoinBy(const RendezvousDialer& dial,
                                  const std::string& address,
                                  const JoinOptions& options);

// Like ListWorkers (rpc/rendezvous.h). `watch` can end it early, also while it
// connects; it is called for each of the two.
absl::StatusOr<std::vector<WorkerInfo>> ListWatched(
    const std::string& address, const std::string& cluster,
    std::chrono::milliseconds timeout, const RendezvousAccess& access,
    const RendezvousConnection::Watch& watch);

}  // namespace internal
}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

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

// By which a worker asks its rendezvous, one call after the other. Errors name
// the rendezvous. Thread-compatible.
class RendezvousConnection {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // Hears, before a call begins, what ends it early from any thread, and null
  // when it has ended. False, before it begins, ends it with Cancelled.
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

// Makes a connection to one rendezvous. Unavailable when nobody answers there
// by `deadline`; Unauthenticated, at once, when the two do not agree on TLS.
using RendezvousDialer =
    std::function<absl::StatusOr<std::shared_ptr<RendezvousConnection>>(
        RendezvousConnection::Deadline deadline)>;

// By gRPC. Where there is a token, each call proves that the worker knows it,
// and no answer counts of whoever does not prove the same.
RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access);

// As Join (rpc/rendezvous.h), of the rendezvous at `address` by `dial`.
absl::StatusOr<Membership> JoinBy(const RendezvousDialer& dial,
                                  const std::string& address,
                                  const JoinOptions& options);

}  // namespace internal
}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_messages.h"

namespace baton::rpc {

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
                           wire::JoinAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::LeaveRequest& request,
                           wire::LeaveAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::RenewRequest& request,
                           wire::RenewAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
  virtual absl::Status Ask(const wire::ListRequest& request,
                           wire::ListAnswer* answer, Deadline deadline,
                           const Watch& watch = {}) = 0;
};

// Connects to one rendezvous. Returns Unavailable if nothing answers there by
// `deadline`, and Unauthenticated at once if the two sides do not agree on TLS.
using RendezvousDialer =
    std::function<absl::StatusOr<std::shared_ptr<RendezvousConnection>>(
        RendezvousConnection::Deadline deadline)>;

// Returns a dialer that uses gRPC (rendezvous_connection.cc). If there is a
// token, each call proves that the worker knows it, and answers are accepted
// only from a rendezvous that proves the same. `watch` can end the attempt to
// connect early.
RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access,
                          RendezvousConnection::Watch watch = {});

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

// Keeps a worker's lease with its rendezvous from a thread of its own: it
// renews the lease every fifth of it and hears at once which workers joined and
// left. If the rendezvous does not answer, it tries again over a new
// connection, until the rendezvous says that another worker has this one's
// place. A rendezvous that was restarted or had struck the worker off takes it
// back. Thread-safe.
class RendezvousLease {
 public:
  // Called on the lease's thread with kJoined, kLeft and kLost events.
  using OnChange = std::function<void(const MemberEvent&)>;

  // `joined.self` includes its rank; `members` is the result of Join.
  RendezvousLease(const std::string& address, JoinOptions joined,
                  Membership members);
  RendezvousLease(internal::RendezvousDialer dial, JoinOptions joined,
                  Membership members);
  ~RendezvousLease();

  void Start(OnChange on_change);
  // No OnChange runs after Stop returns. Must not be called from OnChange.
  // Idempotent.
  void Stop();
  // Leaves the cluster, which frees the worker's place at once. Call it after
  // Stop. Takes at most `timeout`, and returns at once if the connection is
  // known to be broken.
  absl::Status Leave(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  void Run(const OnChange& on_change);
  // The rendezvous may delay its answer by `wait`; after a further `patience`
  // the renewal has failed.
  absl::StatusOr<MembershipChange> Renew(std::chrono::milliseconds wait,
                                         std::chrono::milliseconds patience);
  void Apply(const MembershipChange& change, const OnChange& on_change);
  bool PauseUntil(Clock::time_point until);

  const internal::RendezvousDialer dial_;
  const JoinOptions joined_;
  // Used by the thread alone until Stop has returned.
  uint64_t version_ = 0;
  std::unordered_map<uint64_t, WorkerInfo> members_;  // by incarnation
  // Null before the first connection.
  std::shared_ptr<internal::RendezvousConnection> connection_;
  absl::Status last_;  // result of the last renewal

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends the renewal under way.
  std::function<void()> end_call_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "core/mutex.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_client.h"

namespace baton::rpc {

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

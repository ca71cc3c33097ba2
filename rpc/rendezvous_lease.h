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

// Keeps a worker's lease with its rendezvous, from a thread of its own: says
// every fifth of the lease that the worker is there, and hears at once who came
// and went. A rendezvous that does not answer is tried again, over a new
// connection, until it says that another worker has this one's place. Where it
// has begun anew, or had struck the worker off, it takes it back. Thread-safe.
class RendezvousLease {
 public:
  // On the lease's thread: kJoined, kLeft and kLost.
  using OnChange = std::function<void(const MemberEvent&)>;

  // `joined.self` has its rank, `members` is what Join gave.
  RendezvousLease(const std::string& address, JoinOptions joined,
                  Membership members);
  RendezvousLease(internal::RendezvousDialer dial, JoinOptions joined,
                  Membership members);
  ~RendezvousLease();

  void Start(OnChange on_change);
  // No call of OnChange runs after it. Not from within one. Idempotent.
  void Stop();
  // After Stop: gives the place back at once. Takes `timeout` at most, and no
  // time where the rendezvous is known to be gone.
  absl::Status Leave(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  void Run(const OnChange& on_change);
  // The answer may wait for `wait`, and come `patience` later.
  absl::StatusOr<MembershipChange> Renew(std::chrono::milliseconds wait,
                                         std::chrono::milliseconds patience);
  void Apply(const MembershipChange& change, const OnChange& on_change);
  bool PauseUntil(Clock::time_point until);

  const internal::RendezvousDialer dial_;
  const JoinOptions joined_;
  // The thread's, until Stop has returned.
  uint64_t version_ = 0;
  std::unordered_map<uint64_t, WorkerInfo> members_;  // by incarnation
  std::shared_ptr<internal::RendezvousConnection> connection_;  // once made
  absl::Status last_;  // of the last renewal

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> end_call_ ABSL_GUARDED_BY(mutex_);  // of a renewal
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

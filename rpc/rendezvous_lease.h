// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "rpc/rendezvous.h"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace baton::rpc {

namespace internal {
class RendezvousConnection;
}  // namespace internal

// Keeps a worker's lease with its rendezvous, from a thread of its own: says
// every fifth of the lease that the worker is there, and hears who has taken
// the place of one that was lost. A rendezvous that is away is tried again
// until it says that the worker has been struck off. Thread-safe.
class RendezvousLease {
 public:
  // On the lease's thread.
  using OnNewcomer = std::function<void(const WorkerInfo&)>;

  // `workers` is what Join gave.
  RendezvousLease(std::string address, JoinOptions joined,
                  std::vector<WorkerInfo> workers)
      : address_(std::move(address)),
        joined_(std::move(joined)),
        known_{.workers = std::move(workers)} {}
  ~RendezvousLease();

  void Start(OnNewcomer on_newcomer);
  // No call of OnNewcomer runs after it. Not from within one. Idempotent.
  void Stop();
  // After Stop: gives the place back at once. Takes `timeout` at most, and no
  // time where the rendezvous is known to be gone.
  absl::Status Leave(std::chrono::milliseconds timeout);

 private:
  void Run(const OnNewcomer& on_newcomer);
  absl::StatusOr<Membership> Renew();
  bool Pause(std::chrono::milliseconds pause);

  const std::string address_;
  const JoinOptions joined_;
  // The thread's, until Stop has returned.
  Membership known_;
  std::shared_ptr<internal::RendezvousConnection> connection_;  // once made

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

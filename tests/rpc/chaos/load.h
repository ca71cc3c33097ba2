// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "rpc/agent.h"
#include "tests/rpc/counter.h"

namespace baton::testing {

// Work of one worker that never ends by itself: objects made at random workers,
// called, passed on and dropped, from two threads; and at each other worker one
// call that waits, so that the loss of that worker is seen at once.
class Load {
 public:
  // Writes "lost NAME MICROSECONDS" (of the steady clock, which all processes
  // share) when the waiting call at NAME fails before End.
  // Reports calls that take longer than `limit`.
  Load(rpc::Agent& agent, uint64_t seed, std::chrono::milliseconds limit);
  ~Load() { End(); }

  // Stops, and drops what it made. Idempotent.
  void End();
  // Drops what other workers' loads have passed to this process; when those
  // have ended.
  static void ClearShelf();

  using Clock = std::chrono::steady_clock;
  struct Call {
    Clock::time_point begin, end;
  };
  struct Report {
    int calls = 0;
    int errors = 0;
    std::vector<Call> slow;  // whatever became of them
    std::string odd;         // an error that no fault explains; empty if none
  };
  Report report() const;

  static void FillRegistry(rpc::Registry& registry);

 private:
  // Of one thread.
  struct Worker {
    std::mt19937_64 random;
    std::vector<RRef<Counter>> kept = {};
  };

  void Run(uint64_t seed);
  void WaitAt(const std::string& name);
  absl::Status Step(Worker& worker);
  std::string RandomName(Worker& worker) const;
  void Note(const absl::Status& status, const Call& call);

  rpc::Agent& agent_;
  const std::chrono::milliseconds limit_;
  std::vector<std::string> others_;
  rpc::CancelSource cancel_;
  std::vector<std::thread> threads_;

  mutable Mutex mutex_;
  CondVar ending_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Report report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::testing

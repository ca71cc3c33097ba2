// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton {

// Runs tasks at their time on one thread of its own, so that no busy pool can
// delay a deadline. Tasks must be short and never wait. Thread-safe.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // never 0

  explicit Timer(std::string name);
  ~Timer();
  // Drops what has not run and what comes later. Not on the timer's thread.
  void Stop();

  Id At(Clock::time_point when, Task task);
  // Never, where the clock cannot tell the time.
  Id After(std::chrono::milliseconds delay, Task task);
  // True when this keeps the task from running; false when it has begun, is
  // done or was dropped. Waits for nothing.
  bool Cancel(Id id);

 private:
  void Run();

  const std::string name_;
  Mutex mutex_;
  CondVar wake_;
  std::map<std::pair<Clock::time_point, Id>, Task> tasks_
      ABSL_GUARDED_BY(mutex_);
  std::map<Id, Clock::time_point> when_ ABSL_GUARDED_BY(mutex_);
  Id next_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace baton

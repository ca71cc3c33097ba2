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
  Id After(std::chrono::milliseconds delay, Task task) {
    return At(Clock::now() + delay, std::move(task));
  }
  // True when the task will not run; false when it has begun or is done.
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

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

// Runs tasks at given times on its own thread, so that a busy pool cannot delay
// a deadline. Tasks must be short and never wait. Thread-safe.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // never 0

  explicit Timer(std::string name);
  ~Timer();
  // Drops all tasks that have not run, and later ones. Not callable on the
  // timer's thread.
  void Stop();

  // Runs `task` at `when`, or at once if that has passed.
  Id At(Clock::time_point when, Task task);
  // Never runs the task if the time is too late for the clock to represent.
  Id After(std::chrono::milliseconds delay, Task task);
  // Returns true if this prevents the task from running; false if it has begun,
  // is done or was dropped. Does not wait.
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

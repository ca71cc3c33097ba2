// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <map>
#include <thread>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton::rpc {

// Runs tasks at given times on a thread of its own; they must be short.
// Destruction drops what is not due. Thread-safe.
class Timer {
 public:
  Timer();
  ~Timer();
  void After(std::chrono::milliseconds delay, Task task);

 private:
  using Clock = std::chrono::steady_clock;
  void Run();

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<Clock::time_point, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace baton::rpc

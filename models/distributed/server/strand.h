// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <utility>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton::dist {

// Runs tasks one at a time, in the order in which they arrive, on the threads
// that call Run: data that only tasks use needs no lock. If a task arrives
// while another one runs, or from within it, the thread of that one runs it
// next. Must outlive the calls of Run. Thread-safe.
class Strand {
 public:
  void Run(Task task) {
    {
      const MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
      if (std::exchange(running_, true)) return;
    }
    for (;;) {
      Task next;
      {
        const MutexLock lock(mutex_);
        running_ = !tasks_.empty();
        if (!running_) return;
        next = std::move(tasks_.front());
        tasks_.pop_front();
      }
      next();
    }
  }

 private:
  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::dist

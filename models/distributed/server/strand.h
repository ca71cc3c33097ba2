// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton::dist {

// Runs tasks one at a time, in the order in which they arrive, on a thread of
// its own: data that only tasks use needs no lock, and their parallel loops
// have one team of compute threads, since libgomp keeps a team for each thread
// that runs some. A task may drop the strand; tasks that remain run
// nevertheless. Thread-safe.
class Strand {
 public:
  // `name` (at most 15 characters) is the thread's.
  explicit Strand(std::string name) : thread_(1, std::move(name)) {}

  void Run(Task task) {
    {
      const MutexLock lock(state_->mutex);
      state_->tasks.push_back(std::move(task));
      if (std::exchange(state_->running, true)) return;
    }
    thread_.Post([state = state_] { state->Drain(); });
  }

 private:
  struct State {
    // While a task waits, the pool has another thread, which finds this one
    // running.
    void Drain() {
      for (;;) {
        Task next;
        {
          const MutexLock lock(mutex);
          running = !tasks.empty();
          if (!running) return;
          next = std::move(tasks.front());
          tasks.pop_front();
        }
        next();
      }
    }
    Mutex mutex;
    std::deque<Task> tasks ABSL_GUARDED_BY(mutex);
    bool running ABSL_GUARDED_BY(mutex) = false;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  ThreadPool thread_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/mutex.h"

namespace baton {

using Task = absl::AnyInvocable<void()>;

// Runs tasks, in the order posted, on threads of its own.
// Implementations are thread-safe; Post never blocks and never runs inline.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
};

// A pool that keeps `threads` threads runnable: while a task waits inside a
// BlockingScope (every Future::Await is one) a spare thread takes its place, so
// that nested waits of any depth cannot starve the pool. Destruction runs what
// was posted before and joins. Thread-safe.
class ThreadPool final : public Executor {
 public:
  // `name` (at most 15 characters) shows in debuggers and top -H.
  ThreadPool(int threads, std::string name);
  ~ThreadPool() override;

  void Post(Task task) override;

  int threads() const { return target_; }
  int idle_threads() const;

 private:
  friend class BlockingScope;
  void Run();
  void StartThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EnterBlocking();
  void LeaveBlocking();

  const int target_;
  const std::string name_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  int blocked_ ABSL_GUARDED_BY(mutex_) = 0;
  int alive_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

// Tells the pool that runs this thread, if any, that the thread will wait.
class BlockingScope {
 public:
  BlockingScope();
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

 private:
  ThreadPool* const pool_;
};

}  // namespace baton

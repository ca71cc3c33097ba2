// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"

namespace baton {

using Task = absl::AnyInvocable<void()>;

// Runs tasks in the order in which they are posted, on threads of its own.
// Implementations are thread-safe; Post never blocks and never runs inline.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
};

// A pool that keeps `threads` threads runnable: while a task waits inside a
// BlockingScope (every Future::Await is one) a spare thread takes its place, so
// that nested waits of any depth cannot starve the pool; spare threads end once
// they are no longer needed. Tasks must not throw. The destructor runs the
// tasks that were posted before and joins the threads; it may run on one of the
// pool's own threads, which then ends by itself. Thread-safe.
class ThreadPool final : public Executor {
 public:
  // `name` (at most 15 characters) shows in debuggers and top -H.
  ThreadPool(int threads, std::string name);
  ~ThreadPool() override;

  void Post(Task task) override;
  // Like Post, but if the calling thread has an InlineTask
  // (core/inline_task.h), that may run the task later on this thread.
  void PostOrRunInline(Task task);

  int threads() const;        // as given to the constructor
  int idle_threads() const;   // waiting for a task
  int alive_threads() const;  // idle, busy, blocked and spare ones

 private:
  friend class BlockingScope;
  friend class InlineTask;
  class Core;
  // Shared with the threads, because the last task may destroy the pool itself.
  const std::shared_ptr<Core> core_;
};

// Tells the pool that runs this thread, if any, that the thread is about to
// wait.
class BlockingScope {
 public:
  BlockingScope();
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

 private:
  // Null outside pools and inside another scope of this thread.
  ThreadPool::Core* const pool_;
};

}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton::rpc::internal {

// A thread pool that can be stopped while other code still holds it. Tasks that
// are posted after Stop run inline, so post without holding locks. Thread-safe.
class StoppablePool final : public Executor {
 public:
  StoppablePool(int threads, std::string name)
      : pool_(std::make_unique<ThreadPool>(threads, std::move(name))) {}
  ~StoppablePool() override { Stop(); }

  void Post(Task task) override;
  // See ThreadPool::PostOrRunInline.
  void PostOrRunInline(Task task);
  // Runs the queued tasks and joins the threads. Must not be called on one of
  // them.
  void Stop();

  int threads() const;
  int idle_threads() const;

 private:
  // Calls `use` with the pool, which Stop leaves alone until then. Returns
  // false if it is stopped.
  template <typename Use>
  bool With(Use use) const;

  std::unique_ptr<ThreadPool> pool_;
  std::atomic<bool> stopped_{false};
  mutable std::atomic<int> users_{0};  // calls of With
};

// Runs tasks one at a time and in order. A task passed to Run runs on the
// calling thread if nothing else is under way, which saves waking another
// thread. Other tasks run on the inbox's own thread or after the task of a
// thread that is in Run. Tasks must not block. Post and Run must be called
// without locks. Thread-safe.
class Inbox final : public Executor {
 public:
  explicit Inbox(std::string name) : thread_(1, std::move(name)) {}

  void Post(Task task) override;
  // Runs the task before it returns, unless other tasks are ahead of it.
  void Run(Task task);
  // Runs the queued tasks and joins the thread. Tasks posted later run inline.
  void Stop() { thread_.Stop(); }

 private:
  // Runs up to `limit` tasks of the queue and leaves the rest to the thread.
  void Drain(int limit);

  // Tasks that are queued or run. The thread that raises this from 0 must see
  // to it that tasks run until it is 0 again.
  std::atomic<size_t> open_{0};
  Mutex mutex_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  StoppablePool thread_;  // last: its tasks use the other members
};

}  // namespace baton::rpc::internal

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/executor.h"

namespace baton {

// Lets a thread that posts tasks to pools run one of them itself, which saves
// waking another thread. While an InlineTask lives on a thread, it keeps the
// last task that the thread gives to ThreadPool::PostOrRunInline, and sends the
// one before it to its pool. Tasks that the thread gives during Run go to their
// pools, because the task that runs may wait for them. Confined to its thread,
// which has at most one at a time.
class InlineTask {
 public:
  InlineTask();
  ~InlineTask();  // does what Post does
  InlineTask(const InlineTask&) = delete;
  InlineTask& operator=(const InlineTask&) = delete;

  bool empty() const { return task_ == nullptr; }
  // Runs the task here, as if on a thread of its pool. If the pool's threads
  // are all busy, posts it instead.
  void Run();
  // Sends the task to its pool, if there is one.
  void Post();

 private:
  friend class ThreadPool;
  // Returns false if the task must be posted.
  static bool Take(const std::shared_ptr<ThreadPool::Core>& pool, Task& task);

  std::shared_ptr<ThreadPool::Core> pool_;
  Task task_ = nullptr;
  bool running_ = false;
};

}  // namespace baton

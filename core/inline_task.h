// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/executor.h"

namespace baton {

// Lets a thread that posts tasks to pools run one of them itself, which saves
// waking another thread. While an InlineTask lives on a thread, it keeps the
// first task that the thread gives to ThreadPool::PostOrRunInline. A second
// task makes it send both to their pools, in order, and later ones go there
// directly. Confined to its thread, which has at most one at a time.
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
  bool full_ = false;
};

}  // namespace baton

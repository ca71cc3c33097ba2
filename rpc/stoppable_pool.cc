// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/stoppable_pool.h"

#include <utility>

namespace baton::rpc::internal {

void StoppablePool::Post(Task task) {
  Hand(std::move(task), &ThreadPool::Post);
}

void StoppablePool::PostOrRunInline(Task task) {
  Hand(std::move(task), &ThreadPool::PostOrRunInline);
}

void StoppablePool::Hand(Task task, void (ThreadPool::*post)(Task)) {
  {
    MutexLock lock(mutex_);
    if (pool_ != nullptr) {
      ((*pool_).*post)(std::move(task));
      return;
    }
  }
  task();
}

void StoppablePool::Stop() {
  std::shared_ptr<ThreadPool> pool;
  {
    MutexLock lock(mutex_);
    pool.swap(pool_);
  }
  pool.reset();  // joins without the lock, since its tasks may post
}

int StoppablePool::threads() const {
  MutexLock lock(mutex_);
  return pool_ == nullptr ? 0 : pool_->threads();
}

int StoppablePool::idle_threads() const {
  MutexLock lock(mutex_);
  return pool_ == nullptr ? 0 : pool_->idle_threads();
}

}  // namespace baton::rpc::internal

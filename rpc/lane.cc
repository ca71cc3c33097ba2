// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/lane.h"

#include <utility>

namespace baton::rpc::internal {

void Lane::Post(Task task) { Hand(std::move(task), &ThreadPool::Post); }

void Lane::PostOrCarry(Task task) {
  Hand(std::move(task), &ThreadPool::PostOrCarry);
}

void Lane::Hand(Task task, void (ThreadPool::*post)(Task)) {
  {
    MutexLock lock(mutex_);
    if (pool_ != nullptr) {
      ((*pool_).*post)(std::move(task));
      return;
    }
  }
  task();
}

void Lane::Stop() {
  std::shared_ptr<ThreadPool> pool;
  {
    MutexLock lock(mutex_);
    pool.swap(pool_);
  }
  pool.reset();  // joins, while its tasks may post inline
}

int Lane::threads() const {
  MutexLock lock(mutex_);
  return pool_ == nullptr ? 0 : pool_->threads();
}

int Lane::idle_threads() const {
  MutexLock lock(mutex_);
  return pool_ == nullptr ? 0 : pool_->idle_threads();
}

}  // namespace baton::rpc::internal

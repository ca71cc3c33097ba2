// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/inbox.h"

#include <limits>
#include <utility>

namespace baton::rpc::internal {
namespace {
// The most tasks of others that a thread runs after its own task in Run.
constexpr int kForOthers = 16;
}  // namespace

void Inbox::Post(Task task) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(task));
    if (std::exchange(running_, true)) return;
  }
  thread_.Post([this] { Drain(std::numeric_limits<int>::max()); });
}

void Inbox::Run(Task task) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(running_, true)) {
      queue_.push_back(std::move(task));
      return;
    }
  }
  task();
  task = nullptr;
  Drain(kForOthers);
}

void Inbox::Drain(int limit) {
  for (int done = 0;; ++done) {
    Task next;
    {
      MutexLock lock(mutex_);
      if (queue_.empty()) {
        running_ = false;
        return;
      }
      if (done == limit) break;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next();
  }
  thread_.Post([this] { Drain(std::numeric_limits<int>::max()); });
}

}  // namespace baton::rpc::internal

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
  }
  // Last, so that a thread that sees the task counted also finds it.
  if (open_++ > 0) return;
  thread_.Post([this] { Drain(std::numeric_limits<int>::max()); });
}

void Inbox::Run(Task task) {
  size_t none = 0;
  if (!open_.compare_exchange_strong(none, 1)) return Post(std::move(task));
  task();
  task = nullptr;
  if (--open_ > 0) Drain(kForOthers);
}

void Inbox::Drain(int limit) {
  for (int done = 0; done < limit; ++done) {
    Task next;
    {
      MutexLock lock(mutex_);
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next();
    next = nullptr;
    if (--open_ == 0) return;
  }
  thread_.Post([this] { Drain(std::numeric_limits<int>::max()); });
}

}  // namespace baton::rpc::internal

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/inbox.h"

#include <limits>
#include <utility>

namespace baton::rpc::internal {

template <typename Use>
bool StoppablePool::With(Use use) const {
  ++users_;  // first: either Stop waits for this, or this sees stopped_
  const bool runs = !stopped_;
  if (runs) use(*pool_);
  if (--users_ == 0 && stopped_) users_.notify_all();
  return runs;
}

void StoppablePool::Post(Task task) {
  if (!With([&task](ThreadPool& pool) { pool.Post(std::move(task)); })) task();
}

void StoppablePool::PostOrRunInline(Task task) {
  const auto post = [&task](ThreadPool& pool) {
    pool.PostOrRunInline(std::move(task));
  };
  if (!With(post)) task();
}

void StoppablePool::Stop() {
  if (stopped_.exchange(true)) return;
  for (int users = users_; users > 0; users = users_) users_.wait(users);
  pool_ = nullptr;  // joins; its tasks may post
}

int StoppablePool::threads() const {
  int threads = 0;
  With([&threads](const ThreadPool& pool) { threads = pool.threads(); });
  return threads;
}

int StoppablePool::idle_threads() const {
  int idle = 0;
  With([&idle](const ThreadPool& pool) { idle = pool.idle_threads(); });
  return idle;
}

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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/stoppable_pool.h"

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

}  // namespace baton::rpc::internal

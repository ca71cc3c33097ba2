// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <string>

#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/stoppable_pool.h"

namespace baton::rpc::internal {

// Runs tasks one at a time and in order, as a thread of its own would: on one
// when Post brings them, and on the thread of whoever brings one with Run while
// nothing else is under way, which saves waking another. Tasks never wait.
// Both are called without locks. Thread-safe.
class Inbox final : public Executor {
 public:
  explicit Inbox(std::string name) : thread_(1, std::move(name)) {}

  void Post(Task task) override;
  // Returns when the task has run, unless others are before it.
  void Run(Task task);
  // Runs what is queued and joins; what is posted later runs inline.
  void Stop() { thread_.Stop(); }

 private:
  // Takes up to `limit` tasks off the queue; leaves the rest to the thread.
  void Drain(int limit);

  Mutex mutex_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  StoppablePool thread_;  // last: its tasks use the rest
};

}  // namespace baton::rpc::internal

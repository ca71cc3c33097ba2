// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

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
      : pool_(std::make_shared<ThreadPool>(threads, std::move(name))) {}
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
  // Passes the task to the pool with `post`, or runs it here once the pool is
  // stopped.
  void Hand(Task task, void (ThreadPool::*post)(Task));

  mutable Mutex mutex_;
  std::shared_ptr<ThreadPool> pool_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal

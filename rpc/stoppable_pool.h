// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/executor.h"
#include "core/mutex.h"

namespace baton::rpc::internal {

// A thread pool that can be stopped while others still hold it: what is posted
// after that runs inline. Posted to without locks. Thread-safe.
class StoppablePool final : public Executor {
 public:
  StoppablePool(int threads, std::string name)
      : pool_(std::make_shared<ThreadPool>(threads, std::move(name))) {}
  ~StoppablePool() override { Stop(); }

  void Post(Task task) override;
  // As ThreadPool::PostOrRunInline.
  void PostOrRunInline(Task task);
  // Runs what is queued and joins. Not on one of its threads.
  void Stop();

  int threads() const;
  int idle_threads() const;

 private:
  // To the pool by `post`; once it is gone, runs the task in this call.
  void Hand(Task task, void (ThreadPool::*post)(Task));

  mutable Mutex mutex_;
  std::shared_ptr<ThreadPool> pool_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal

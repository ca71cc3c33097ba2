// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "core/executor.h"

namespace baton::rpc::internal {

// A thread pool that can be stopped while other code still holds it. Tasks that
// are posted after Stop run inline, so post without holding locks. Thread-safe.
class StoppablePool final : public Executor {
 public:
  StoppablePool(int threads, std::string name)
      : pool_(std::make_unique<ThreadPool>(threads, std::move(name))) {}
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
  // Calls `use` with the pool, which Stop leaves alone until then. Returns
  // false if it is stopped.
  template <typename Use>
  bool With(Use use) const;

  std::unique_ptr<ThreadPool> pool_;
  std::atomic<bool> stopped_{false};
  mutable std::atomic<int> users_{0};  // calls of With
};

}  // namespace baton::rpc::internal

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "rpc/agent.h"
#include "tests/support/local_cluster.h"

// What the rpc tests call on each other's workers.
namespace baton::testing {

// Opens once. Waits end with the test's limit at the latest.
class Gate {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  bool Await(std::chrono::milliseconds timeout = std::chrono::seconds(8)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    BlockingScope blocking;
    MutexLock lock(mutex_);
    while (!open_) {
      if (!changed_.WaitUntil(mutex_, deadline)) return open_;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

// A value with a life that can be watched.
class Counter {
 public:
  explicit Counter(int start) : value_(start) { ++alive; }
  ~Counter() { --alive; }
  static absl::StatusOr<std::unique_ptr<Counter>> Make(int start);
  int Add(int n) { return value_ += n; }
  int Get() const noexcept { return value_; }
  absl::Status Check(bool fine) const;
  Tensor Scale(const Tensor& x) const;
  RRef<Counter> Pass(RRef<Counter> other) const { return other; }
  static absl::StatusOr<int> AddTo(rpc::CallContext& call, RRef<Counter> other,
                                   int n);
  int NotExported() { return 0; }

  using Exports =
      rpc::Methods<&Counter::Make, &Counter::Add, &Counter::Get,
                   &Counter::Check, &Counter::Scale, &Counter::Pass>;
  static inline std::atomic<int> alive{0};
  // Objects are destroyed a moment after the tables have let go of them.
  static bool AllGone() {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (alive != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return alive == 0;
  }

 private:
  std::atomic<int> value_;
};

int Sum(int a, int b);
std::string WhoCalls(rpc::CallContext& call);
void FillCounter(rpc::Registry& registry);

}  // namespace baton::testing

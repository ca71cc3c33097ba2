// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "core/future.h"

namespace baton {
namespace {

TEST(ThreadPool, RunsTasksInOrderOnOneThread) {
  std::vector<int> order;
  {
    ThreadPool pool(1, "one");
    for (int i = 0; i < 100; ++i)
      pool.Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ThreadPool, NestedWaitsOfDepthHundredPassOneThread) {
  auto pool = std::make_shared<ThreadPool>(1, "nested");
  std::function<int(int)> nest = [&](int depth) -> int {
    if (depth == 0) return 0;
    Promise<int> promise;
    pool->Post([&, promise] { promise.Set(nest(depth - 1)); });
    return promise.future().Await().value() + 1;
  };
  EXPECT_EQ(nest(100), 100);
}

TEST(ThreadPool, SpareThreadsEnd) {
  ThreadPool pool(2, "spare");
  constexpr int kTasks = 20;
  Promise<void> go;
  std::vector<Future<void>> done;
  for (int i = 0; i < kTasks; ++i) {
    Promise<void> promise;
    done.push_back(promise.future());
    pool.Post([promise, future = go.future()] { promise.Set(future.Await()); });
  }
  // Every task but the last ones makes way by waiting.
  Promise<void> probe;
  pool.Post([probe] { probe.Set(absl::OkStatus()); });
  ASSERT_TRUE(probe.future().Await().ok());
  EXPECT_GE(pool.alive_threads(), kTasks);
  go.Set(absl::OkStatus());
  ASSERT_TRUE(WaitAll(done).Await().ok());
  // The promises are set just before the threads end.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (pool.alive_threads() > 2 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_LE(pool.alive_threads(), 2);
}

TEST(ThreadPool, NeverRunsMoreTasksAtOnceThanItHasThreads) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  {
    ThreadPool pool(2, "bounded");
    for (int i = 0; i < 500; ++i) {
      pool.Post([&] {
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --running;
      });
    }
  }
  EXPECT_LE(most, 2);
  EXPECT_EQ(running, 0);
}

TEST(ThreadPool, MayBeDroppedByItsOwnLastTask) {
  auto pool = std::make_shared<ThreadPool>(2, "own");
  Promise<void> dropped;
  Promise<void> released;
  pool->Post([pool, dropped, gate = released.future()]() mutable {
    ASSERT_TRUE(gate.Await().ok());
    pool.reset();
    dropped.Set(absl::OkStatus());
  });
  pool.reset();
  released.Set(absl::OkStatus());
  EXPECT_TRUE(dropped.future().Await().ok());
}

TEST(ThreadPool, TasksMayPostWhileItEnds) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool(1, "tail");
    pool.Post([&] {
      ++runs;
      pool.Post([&] { ++runs; });
    });
  }
  EXPECT_EQ(runs, 2);
}

TEST(BlockingScope, NestedScopesCountOnce) {
  ThreadPool pool(1, "scope");
  Promise<int> alive;
  pool.Post([&] {
    BlockingScope outer;
    BlockingScope inner;
    Promise<void> one;
    pool.Post([one] { one.Set(absl::OkStatus()); });
    (void)one.future().Await();
    alive.Set(pool.alive_threads());
  });
  EXPECT_EQ(alive.future().Await().value(), 2);
}

}  // namespace
}  // namespace baton

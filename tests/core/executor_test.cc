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

// False after two seconds.
bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

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
  EXPECT_TRUE(Eventually([&] { return pool.alive_threads() <= 2; }));
}

// A task wakes a thread that is one too many by then; when that one ends, the
// other one that sleeps has to take the task.
TEST(ThreadPool, AThreadThatEndsLeavesNoTaskToASleepingOne) {
  ThreadPool pool(2, "surplus");
  Promise<void> both_sleep;
  Promise<void> outcome;
  pool.Post([&] {
    both_sleep.future().Await().IgnoreError();
    Promise<void> ran;
    pool.Post([ran] { ran.Set(absl::OkStatus()); });
    Eventually([&] { return pool.alive_threads() == 2; });
    outcome.Set(ran.future().Await(std::chrono::seconds(2)));
  });
  std::atomic<int> running{0};
  for (int i = 0; i < 2; ++i) {
    pool.Post([&] {
      ++running;
      Eventually([&] { return running == 2; });
    });
  }
  ASSERT_TRUE(Eventually([&] { return pool.idle_threads() == 2; }));
  ASSERT_EQ(pool.alive_threads(), 3);
  both_sleep.Set(absl::OkStatus());
  EXPECT_EQ(outcome.future().Await(), absl::OkStatus());
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

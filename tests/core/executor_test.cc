// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/future.h"
#include "core/inline_task.h"

namespace baton {
namespace {

// False after a minute: on a busy machine each yield may take long.
bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
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
  Promise<void> both_sleep;
  Promise<void> outcome;
  std::atomic<int> running{0};
  ThreadPool pool(2, "surplus");
  pool.Post([&] {
    both_sleep.future().Await().IgnoreError();
    Promise<void> ran;
    pool.Post([ran] { ran.Set(absl::OkStatus()); });
    Eventually([&] { return pool.alive_threads() == 2; });
    outcome.Set(ran.future().Await(std::chrono::seconds(2)));
  });
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

// Each task stays until a second one is beside it, and then for long enough
// that a third one would be seen.
TEST(ThreadPool, NeverRunsMoreTasksAtOnceThanItHasThreads) {
  constexpr int kTasks = 40;
  std::atomic<int> running{0}, begun{0}, most{0};
  {
    ThreadPool pool(2, "bounded");
    for (int i = 0; i < kTasks; ++i) {
      pool.Post([&] {
        const int turn = begun++ / 2;
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        EXPECT_TRUE(Eventually([&] { return begun >= 2 * (turn + 1); }));
        for (int k = 0; k < 200; ++k) std::this_thread::yield();
        --running;
      });
    }
  }
  EXPECT_EQ(most, 2);
  EXPECT_EQ(begun, kTasks);
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
  Promise<int> alive;
  ThreadPool pool(1, "scope");
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

TEST(ThreadPool, ManyTasksWakeAllThreadsThatMayRun) {
  std::atomic<int> inside{0};
  ThreadPool pool(4, "pool");
  std::vector<Future<void>> done;
  // Twice: on new threads, and on those that sleep.
  for (int round = 0; round < 2; ++round) {
    inside = 0;
    for (int i = 0; i < 4; ++i) {
      const Promise<void> promise;
      done.push_back(promise.future());
      pool.Post([&inside, promise] {
        ++inside;
        promise.Set(Eventually([&] { return inside == 4; })
                        ? absl::OkStatus()
                        : absl::DeadlineExceededError("alone"));
      });
    }
    for (const auto& each : done) EXPECT_TRUE(each.Await().ok());
    EXPECT_TRUE(Eventually([&] { return pool.idle_threads() == 4; }));
  }
}

// The spare thread is the last to hold the pool.
TEST(ThreadPool, EndsWithASpareThreadOfATaskThatStoppedIt) {
  std::atomic<bool> ran = false;
  auto pool = std::make_unique<ThreadPool>(1, "own");
  ThreadPool& own = *pool;
  own.Post([&] {
    own.Post([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ran = true;
    });
    pool.reset();
    const BlockingScope blocking;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!ran && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(ran);
  // For the thread to end.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST(InlineTask, RunsTheLastTaskHereAndSendsOthersToTheirPool) {
  ThreadPool pool(2, "pool");
  const auto here = std::this_thread::get_id();
  const auto thread_of = [&](Promise<std::string> told, const char* name) {
    return [=] {
      told.Set(std::this_thread::get_id() == here ? std::string(name) + " here"
                                                  : std::string(name));
    };
  };
  InlineTask inline_task;
  for (int round = 0; round < 2; ++round) {
    Promise<std::string> a, b, c;
    pool.PostOrRunInline(thread_of(a, "a"));
    EXPECT_FALSE(inline_task.empty());
    EXPECT_FALSE(a.future().ready());
    inline_task.Run();
    EXPECT_EQ(*a.future().Await(), "a here");
    pool.PostOrRunInline(thread_of(b, "b"));
    pool.PostOrRunInline(thread_of(c, "c"));
    EXPECT_EQ(*b.future().Await(), "b");
    EXPECT_FALSE(c.future().ready());
    EXPECT_TRUE(Eventually(
        [&] { return pool.idle_threads() == pool.alive_threads(); }));
    inline_task.Run();
    EXPECT_EQ(*c.future().Await(), "c here");
    EXPECT_TRUE(inline_task.empty());
  }
}

TEST(InlineTask, SendsWhatItsTaskGivesToThePool) {
  ThreadPool pool(1, "pool");
  InlineTask inline_task;
  const Promise<void> given;
  bool came = false;
  pool.PostOrRunInline([&] {
    pool.PostOrRunInline([given] { given.Set(absl::OkStatus()); });
    came = given.future().Await().ok();
  });
  inline_task.Run();
  EXPECT_TRUE(came);
}

TEST(InlineTask, IsOneOfThePoolsThreads) {
  const Promise<void> entered, go_on, next;
  std::atomic<int> inside{0}, most{0};
  ThreadPool pool(1, "pool");
  const auto task = [&] {
    most = std::max(most.load(), ++inside);
    --inside;
  };
  InlineTask inline_task;
  // Not beside a task that runs...
  pool.Post([&] {
    ++inside;
    entered.Set(absl::OkStatus());
    while (!go_on.future().ready()) std::this_thread::yield();
    --inside;
  });
  ASSERT_TRUE(entered.future().Await().ok());
  pool.PostOrRunInline(task);
  inline_task.Run();  // sends it to the pool
  go_on.Set(absl::OkStatus());
  // ...and none runs beside it, unless it waits.
  const Promise<void> after;
  pool.Post([after] { after.Set(absl::OkStatus()); });
  EXPECT_TRUE(after.future().Await().ok());
  EXPECT_TRUE(Eventually([&] { return pool.idle_threads() == 1; }));
  pool.PostOrRunInline([&] {
    ++inside;
    pool.Post([&] {
      task();
      next.Set(absl::OkStatus());
    });
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_FALSE(next.future().ready());
    --inside;
    EXPECT_TRUE(next.future().Await().ok());
  });
  inline_task.Run();
  EXPECT_TRUE(next.future().ready());
  EXPECT_EQ(most, 1);
}

TEST(InlineTask, IsDoneBeforeItsPoolEnds) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 200; ++i) {
    auto pool = std::make_unique<ThreadPool>(1, "pool");
    const Promise<void> carried;
    std::thread thread([&] {
      InlineTask inline_task;
      pool->PostOrRunInline([&] { ++ran; });
      carried.Set(absl::OkStatus());
      if (i % 3 == 0) std::this_thread::yield();
      if (i % 2 == 0) inline_task.Run();
    });
    EXPECT_TRUE(carried.future().Await().ok());
    pool.reset();
    EXPECT_EQ(ran, i + 1);
    thread.join();
  }
}

// The last reference may be the task's own.
TEST(InlineTask, MayEndItsPool) {
  auto pool = std::make_shared<ThreadPool>(1, "pool");
  InlineTask inline_task;
  pool->PostOrRunInline([&pool] { pool.reset(); });
  inline_task.Run();
  EXPECT_EQ(pool, nullptr);
}

}  // namespace
}  // namespace baton

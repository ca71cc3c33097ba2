// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "rpc/inbox.h"

namespace baton::rpc::internal {
namespace {

TEST(StoppablePool, WhatIsPostedWhileItStopsRunsOnce) {
  constexpr int kThreads = 3, kTasks = 50;
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> ran{0};
    StoppablePool pool(2, "test-pool");
    std::latch begun(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        begun.arrive_and_wait();
        for (int task = 0; task < kTasks; ++task) pool.Post([&ran] { ++ran; });
      });
    }
    begun.wait();
    pool.Stop();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran, kThreads * kTasks);
  }
}

TEST(StoppablePool, RunsTasksInlineOnceItIsStopped) {
  StoppablePool pool(1, "test-pool");
  EXPECT_EQ(pool.threads(), 1);
  pool.Stop();
  EXPECT_EQ(pool.threads(), 0);
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id there;
  pool.Post([&there] { there = std::this_thread::get_id(); });
  EXPECT_EQ(there, here);
  there = {};
  pool.PostOrRunInline([&there] { there = std::this_thread::get_id(); });
  EXPECT_EQ(there, here);
  pool.Stop();  // again, with no effect
}

}  // namespace
}  // namespace baton::rpc::internal

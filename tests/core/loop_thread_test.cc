// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/loop_thread.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/compute_threads.h"
#include "core/mutex.h"
#include "core/parallel.h"

namespace baton {
namespace {

using Threads = std::set<std::thread::id>;

// The threads that run the parts of a loop.
Threads ThreadsOf(int64_t count) {
  Mutex mutex;
  Threads threads;
  ParallelFor(count, 1, [&](int64_t, int64_t) {
    const MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  return threads;
}

TEST(LoopThread, RunsLoopsOfManyThreadsWithOneTeam) {
  LoopThread loops("test-loops");
  std::vector<Threads> of_threads(4);
  std::vector<std::thread> callers;
  callers.reserve(of_threads.size());
  for (Threads& threads : of_threads) {
    callers.emplace_back([&] {
      const ComputeThreadsScope two(2);
      const LoopThread::Scope scope(loops);
      for (int i = 0; i < 20; ++i) threads.merge(ThreadsOf(2));
      EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Threads& threads : of_threads) {
    EXPECT_EQ(threads.size(), 2u);
    EXPECT_EQ(threads, of_threads.front());
  }
}

TEST(LoopThread, LeavesALoopOfOnePartWhereItIs) {
  LoopThread loops("test-loops");
  const ComputeThreadsScope two(2);
  const LoopThread::Scope scope(loops);
  EXPECT_EQ(ThreadsOf(1), Threads{std::this_thread::get_id()});
  const ComputeThreadsScope one(1);
  EXPECT_EQ(ThreadsOf(2), Threads{std::this_thread::get_id()});
}

TEST(LoopThread, RunsLoopsOnlyWithinItsScope) {
  LoopThread loops("test-loops");
  const ComputeThreadsScope two(2);
  {
    const LoopThread::Scope scope(loops);
    EXPECT_EQ(LoopThread::OfThisThread(), &loops);
  }
  EXPECT_EQ(LoopThread::OfThisThread(), nullptr);
  EXPECT_EQ(ThreadsOf(2).count(std::this_thread::get_id()), 1u);
}

TEST(LoopThread, PassesOnWhatALoopThrows) {
  LoopThread loops("test-loops");
  const ComputeThreadsScope two(2);
  const LoopThread::Scope scope(loops);
  EXPECT_THROW(
      ParallelFor(2, 1,
                  [](int64_t, int64_t) { throw std::runtime_error("bad"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace baton

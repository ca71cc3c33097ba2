// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/parallel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace baton {
namespace {

class ParallelForTest : public ::testing::Test {
 protected:
  ~ParallelForTest() override { SetComputeThreads(threads_); }
  const int threads_ = ComputeThreads();
};

TEST_F(ParallelForTest, CoversEachIndexOnceInPartsOfTheGrain) {
  for (int threads : {1, 2, 5}) {
    SetComputeThreads(threads);
    for (int64_t count : {0, 1, 9, 10, 11, 1000}) {
      std::vector<int> hits(static_cast<size_t>(count), 0);
      std::atomic<int> parts{0};
      ParallelFor(count, 10, [&](int64_t begin, int64_t end) {
        ++parts;
        EXPECT_TRUE(end - begin >= 10 || count < 10);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (int hit : hits) ASSERT_EQ(hit, 1);
      EXPECT_LE(parts, threads);
    }
  }
}

// libgomp would end threads after a loop of few parts, and start others for the
// next one of many.
TEST_F(ParallelForTest, LoopsOfFewAndOfManyPartsHaveTheSameThreads) {
  SetComputeThreads(4);
  Mutex mutex;
  std::set<pid_t> threads;
  for (int i = 0; i < 20; ++i) {
    for (const int64_t parts : {2, 4}) {
      ParallelFor(parts, 1, [&](int64_t, int64_t) {
        const MutexLock lock(mutex);
        threads.insert(gettid());
      });
    }
  }
  EXPECT_EQ(threads.size(), 4u);
}

TEST_F(ParallelForTest, RethrowsWhatTheBodyThrows) {
  SetComputeThreads(3);
  for (int64_t bad : {0, 500, 999}) {
    EXPECT_THROW(ParallelFor(1000, 1,
                             [bad](int64_t begin, int64_t end) {
                               if (begin <= bad && bad < end) {
                                 throw std::runtime_error("bad");
                               }
                             }),
                 std::runtime_error);
  }
}

TEST_F(ParallelForTest, NestedLoopsRunInline) {
  SetComputeThreads(2);
  std::atomic<int> total{0};
  ParallelFor(2, 1, [&](int64_t, int64_t) {
    const auto outer = std::this_thread::get_id();
    ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total, 200);
}

TEST_F(ParallelForTest, ThreadsAreSetPerCallingThread) {
  SetComputeThreads(3);
  std::thread([] {
    SetComputeThreads(1);
    EXPECT_EQ(ComputeThreads(), 1);
  }).join();
  EXPECT_EQ(ComputeThreads(), 3);
  SetComputeThreads(0);
  EXPECT_EQ(ComputeThreads(), 1);
}

}  // namespace
}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/shared_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace baton {
namespace {

// Two numbers that are one under the lock, and threads that look.
class Guarded {
 public:
  void Write() {
    const WriterLock lock(mutex_);
    ++first_;
    std::this_thread::yield();
    ++second_;
  }
  bool IsWhole() const {
    const ReaderLock lock(mutex_);
    return first_ == second_;
  }
  int written() const {
    const ReaderLock lock(mutex_);
    return first_;
  }

 private:
  mutable SharedMutex mutex_;
  int first_ ABSL_GUARDED_BY(mutex_) = 0;
  int second_ ABSL_GUARDED_BY(mutex_) = 0;
};

void RunAll(std::vector<std::function<void()>> bodies) {
  std::vector<std::thread> threads;
  for (auto& body : bodies) threads.emplace_back(std::move(body));
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedMutex, NobodySeesHalfOfWhatAWriterDoes) {
  Guarded guarded;
  std::atomic<int> torn{0};
  const auto write = [&] {
    for (int i = 0; i < 2000; ++i) guarded.Write();
  };
  const auto read = [&] {
    for (int i = 0; i < 2000; ++i) torn += guarded.IsWhole() ? 0 : 1;
  };
  RunAll({write, read, write, read, read});
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(guarded.written(), 4000);
}

TEST(SharedMutex, ReadersHoldItTogether) {
  SharedMutex mutex;
  std::atomic<int> inside{0};
  const auto read = [&] {
    const ReaderLock lock(mutex);
    ++inside;
    while (inside < 3) std::this_thread::yield();  // else hangs here
  };
  RunAll({read, read, read});
  EXPECT_EQ(inside, 3);
}

// Two readers, one of which always has it: a writer comes in all the same, and
// so does a reader between two writers of whom one always wants it.
TEST(SharedMutex, NeitherKindKeepsTheOtherOut) {
  SharedMutex mutex;
  std::atomic<bool> over{false};
  std::atomic<int> reads{0}, writes{0};
  const auto read = [&] {
    while (!over) {
      const ReaderLock lock(mutex);
      const int before = ++reads;
      // Until another reader has it too, or a writer keeps that one waiting.
      for (int i = 0; i < 100 && reads == before; ++i)
        std::this_thread::yield();
    }
  };
  const auto write = [&] {
    while (!over) {
      const WriterLock lock(mutex);
      ++writes;
    }
  };
  const auto look = [&] {
    while (reads < 1000 || writes < 1000) std::this_thread::yield();
    over = true;
  };
  RunAll({read, read, write, write, look});
}

}  // namespace
}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/status.h"
#include "tests/support/error_of.h"

namespace baton {
namespace {

TEST(Storage, IsAlignedAndCounted) {
  const size_t before = CpuMemoryStats().live_bytes;
  for (size_t bytes : {0, 1, 63, 513, 1 << 20, 3 << 20}) {
    const auto storage = Storage::Allocate(bytes, Device::Cpu());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u);
    EXPECT_EQ(storage->bytes(), bytes);
    EXPECT_EQ(CpuMemoryStats().live_bytes, before + bytes);
    if (bytes > 0) std::memset(storage->data(), 1, bytes);
  }
  EXPECT_EQ(CpuMemoryStats().live_bytes, before);
}

TEST(Storage, ReusesFreedBlocks) {
  constexpr size_t kBytes = 5 << 20;
  const void* first = Storage::Allocate(kBytes, Device::Cpu())->data();
  EXPECT_GE(CpuMemoryStats().cached_bytes, kBytes);
  EXPECT_EQ(Storage::Allocate(kBytes, Device::Cpu())->data(), first);
  ReleaseCachedCpuMemory();
  EXPECT_EQ(CpuMemoryStats().cached_bytes, 0u);
}

TEST(Storage, TheCacheStaysBounded) {
  ReleaseCachedCpuMemory();
  for (size_t step = 0; step < 400; ++step) {
    (void)Storage::Allocate((1 << 20) + step * 40'000, Device::Cpu());
    const MemoryStats stats = CpuMemoryStats();
    ASSERT_LE(stats.live_bytes + stats.cached_bytes,
              stats.peak_bytes + stats.peak_bytes / 4 + (64u << 20));
  }
}

TEST(Storage, AnImpossibleSizeIsAnErrorThatNamesIt) {
  const size_t before = CpuMemoryStats().live_bytes;
  EXPECT_THAT(test::ErrorOf([] {
                (void)Storage::Allocate(size_t{1} << 60, Device::Cpu());
              }),
              ::testing::HasSubstr("1152921504606846976"));
  EXPECT_THAT(
      test::ErrorOf([] { (void)Storage::Allocate(~size_t{0}, Device::Cpu()); }),
      ::testing::HasSubstr("18446744073709551615"));
  EXPECT_EQ(CpuMemoryStats().live_bytes, before);
}

TEST(Storage, WrapReleasesOnce) {
  int released = 0;
  int value = 3;
  {
    const auto storage = Storage::Wrap(&value, sizeof(value), Device::Cpu(),
                                       [&released] { ++released; });
    const auto copy = storage;
    EXPECT_EQ(storage->data(), &value);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, IdsAreNeverReused) {
  const uint64_t first = Storage::Allocate(8, Device::Cpu())->id();
  EXPECT_GT(Storage::Allocate(8, Device::Cpu())->id(), first);
}

TEST(Storage, BlocksAreNeverSharedByThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> clashes{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&clashes, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      std::vector<std::shared_ptr<Storage>> held;
      for (int i = 0; i < 2000; ++i) {
        auto storage = Storage::Allocate(64 + random() % 4096, Device::Cpu());
        *static_cast<int*>(storage->data()) = t;
        held.push_back(std::move(storage));
        if (held.size() < 8) continue;
        const size_t victim = random() % held.size();
        if (*static_cast<int*>(held[victim]->data()) != t) ++clashes;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
}

}  // namespace
}  // namespace baton

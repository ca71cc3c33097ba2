// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/cuda/allocator.h"
#include "core/future.h"
#include "core/ops/matmul.h"
#include "core/stream.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::cuda {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

class GpuMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  const Device device_ = test::TestDevice();
};

TEST_F(GpuMemory, ComesBackToItsStreamAtOnce) {
  const Stream stream = Stream::Default(device_);
  void* first = Allocate(3 * kMiB, stream);
  Free(first, device_.index(), {});
  void* second = Allocate(3 * kMiB, stream);
  EXPECT_EQ(first, second);
  void* other = Allocate(3 * kMiB, Stream::Next(device_));
  EXPECT_NE(second, other);
  Free(second, device_.index(), {});
  Free(other, device_.index(), {});
}

TEST_F(GpuMemory, NeighboursMergeIntoTheWholeSegment) {
  ReleaseCached(device_.index());
  const Stream stream = Stream::Next(device_);
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Allocate(kMiB / 2, stream));
  const Segment segment = SegmentOf(blocks[0], device_.index());
  for (void* block : blocks) {
    EXPECT_EQ(SegmentOf(block, device_.index()).base, segment.base);
  }
  for (int i : {1, 3, 0, 2}) {
    Free(blocks[static_cast<size_t>(i)], device_.index(), {});
  }
  void* whole = Allocate(kMiB, stream);
  EXPECT_EQ(whole, segment.base);
  Free(whole, device_.index(), {});
}

TEST_F(GpuMemory, CountsLivePeakAndCached) {
  ReleaseCachedGpuMemory(device_);
  ResetPeakGpuMemory(device_);
  const MemoryStats before = GpuMemoryStats(device_);
  {
    const Tensor a = Tensor::Empty({4, 1 << 20}, {.device = device_});
    EXPECT_EQ(GpuMemoryStats(device_).live_bytes,
              before.live_bytes + 16 * kMiB);
  }
  const MemoryStats after = GpuMemoryStats(device_);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_bytes, before.live_bytes + 16 * kMiB);
  EXPECT_GE(after.cached_bytes, 16 * kMiB);
  ReleaseCachedGpuMemory(device_);
  EXPECT_LT(GpuMemoryStats(device_).cached_bytes, after.cached_bytes);
}

TEST_F(GpuMemory, WhatIsFreeIncludesWhatIsCachedAndEndsAtTheLimit) {
  ReleaseCachedGpuMemory(device_);
  const size_t before = FreeGpuMemory(device_);
  {
    const Tensor a = Tensor::Empty({64, 1 << 20}, {.device = device_});
    EXPECT_LE(FreeGpuMemory(device_), before - 256 * kMiB);
  }
  const MemoryStats stats = GpuMemoryStats(device_);
  EXPECT_GE(stats.cached_bytes, 256 * kMiB);
  EXPECT_GE(FreeGpuMemory(device_), 256 * kMiB);
  SetGpuMemoryLimit(device_, stats.live_bytes + stats.cached_bytes + kMiB);
  EXPECT_EQ(FreeGpuMemory(device_), stats.cached_bytes + kMiB);
  SetGpuMemoryLimit(device_, 0);
}

TEST_F(GpuMemory, BeyondTheLimitTheErrorNamesTheSizes) {
  ReleaseCachedGpuMemory(device_);
  const MemoryStats stats = GpuMemoryStats(device_);
  SetGpuMemoryLimit(device_, stats.live_bytes + stats.cached_bytes + 64 * kMiB);
  const std::string error = test::ErrorOf([&] {
    Tensor::Empty({100, 1 << 20}, {.device = device_});
  });
  SetGpuMemoryLimit(device_, 0);
  EXPECT_THAT(error, HasSubstr(device_.ToString()));
  EXPECT_THAT(error, HasSubstr("wanted 400.0 MiB"));
  EXPECT_THAT(error, HasSubstr("limit"));
  EXPECT_NO_THROW(Tensor::Empty({100, 1 << 20}, {.device = device_}));
}

TEST_F(GpuMemory, WhatAnotherStreamStillReadsIsNotUsedAnew) {
  const Stream home = Stream::Default(device_);
  const Stream reader = Stream::Next(device_);
  constexpr int64_t kCount = int64_t{1} << 24;
  for (int round = 0; round < 20; ++round) {
    Tensor x = Tensor::Full({kCount}, round, {.device = device_});
    Tensor copy;
    {
      const StreamScope scope(reader);
      // Work in front, so that the read comes late.
      for (int i = 0; i < 8; ++i) copy = x.Clone();
    }
    x = Tensor();
    // Wants the same block; must not overwrite what is still being read.
    const Tensor next = Tensor::Full({kCount}, -1, {.device = device_});
    EXPECT_EQ(copy.Slice(0, kCount - 1, kCount).Item(), round);
    EXPECT_EQ(next.Slice(0, 0, 1).Item(), -1);
  }
  home.Synchronize();
}

TEST_F(GpuMemory, PinnedCopiesRunBesideTheHost) {
  const Tensor host = Tensor::Empty({1 << 20}, {.pinned = true});
  host.Fill(3);
  const Tensor there = Tensor::Empty({1 << 20}, {.device = device_});
  there.CopyFromAsync(host);
  const Tensor back = Tensor::Empty({1 << 20}, {.pinned = true});
  back.CopyFromAsync(there);
  CurrentStream(device_).Synchronize();
  EXPECT_EQ(back.data<float>()[(1 << 20) - 1], 3);
}

TEST_F(GpuMemory, WhatIsMappedIsPinnedForAsLongAsItIsWanted) {
  constexpr size_t kMapped = size_t{16} << 20;
  void* data = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  std::shared_ptr<void> pinned = cuda::Pin(data, kMapped);
  constexpr int64_t kCount = kMapped / sizeof(float);
  const Tensor here =
      Tensor::FromStorage(Storage::Wrap(data, kMapped, Device::Cpu(), [] {}),
                          DType::kF32, {kCount}, {1}, 0);
  here.Fill(7);
  EXPECT_EQ(here.To(device_).Slice(0, kCount - 1, kCount).Item(), 7);
  EXPECT_THROW(cuda::Pin(data, kMapped), Error);
  pinned = nullptr;
  pinned = cuda::Pin(data, kMapped);
  pinned = nullptr;
  munmap(data, kMapped);
}

TEST_F(GpuMemory, ViewsOfEveryKindTravelBothWays) {
  const Tensor host = Tensor::Arange(6 * 5).Reshape({6, 5}).To(DType::kF64);
  const Tensor there = host.To(device_);
  for (const Tensor& x : {host, there}) {
    const Device other = x.device().is_cpu() ? device_ : Device::Cpu();
    const std::vector<Tensor> views = {
        x.Slice(1, 2, 3),  // one column: an axis of one element, stride 1
        x.Slice(0, 2, 3).Transpose(0, 1),
        x.Slice(0, 0, 6, 2),
        x.Transpose(0, 1),
        x.Slice(0, 1, 2).Expand({3, 5}),
        x.Select(1, 4)};
    for (const Tensor& view : views) {
      EXPECT_EQ(view.To(other).ToVector<double>(), view.ToVector<double>());
      const Tensor target =
          Tensor::Zeros(view.shape(), {.dtype = DType::kF32, .device = other});
      target.CopyFrom(view);
      EXPECT_EQ(target.To(DType::kF64).ToVector<double>(),
                view.ToVector<double>());
    }
  }
}

TEST_F(GpuMemory, EventsOrderAndTimeStreams) {
  const Stream a = Stream::Next(device_), b = Stream::Next(device_);
  Event begin(device_), end(device_);
  Tensor x;
  {
    const StreamScope scope(a);
    begin.Record(a);
    x = Tensor::Full({1 << 22}, 1, {.device = device_});
    for (int i = 0; i < 10; ++i) x = x.Clone();
    end.Record(a);
  }
  end.Wait(b);
  b.Synchronize();
  EXPECT_TRUE(end.HasEnded());
  EXPECT_GT(end.MillisecondsSince(begin), 0);
}

// As a worker's shared memory is, whose sender writes it anew once it is back.
TEST_F(GpuMemory, WhatOthersPinnedIsTheirsAgainWhenItIsCopied) {
  constexpr int64_t kCount = 1 << 22;
  std::vector<float> memory(kCount, 1);
  const std::shared_ptr<void> pinned =
      Pin(memory.data(), memory.size() * sizeof(float));
  for (int round = 0; round < 20; ++round) {
    const Promise<void> back;
    Tensor host = Tensor::FromStorage(
        Storage::Wrap(memory.data(), memory.size() * sizeof(float),
                      Device::Cpu(),
                      [&memory, back] {
                        std::fill(memory.begin(), memory.end(), -1);
                        back.Set(absl::OkStatus());
                      }),
        DType::kF32, {kCount}, {1}, 0);
    host.Fill(round);
    Tensor busy = Tensor::Ones({2048, 2048}, {.device = device_});
    for (int i = 0; i < 20; ++i) busy = ops::Matmul(busy, busy);
    const Tensor there = host.To(device_);
    host = Tensor();
    ASSERT_TRUE(back.future().Await().ok());
    const std::vector<float> got = there.ToVector<float>();
    EXPECT_EQ(std::count(got.begin(), got.end(), round), kCount);
  }
}

TEST_F(GpuMemory, TensorsTravelBetweenGpus) {
  if (DeviceCount() < 2) GTEST_SKIP() << "one GPU here: skipped";
  const Device other = Device::Cuda(1);
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    const Tensor host =
        Tensor::Arange(2 * 3 * 5 * 7).Reshape({2, 3, 5, 7}).To(DType::kF32);
    const Tensor here = host.Contiguous(format).To(device_);
    for (int i = 0; i < 50; ++i) {
      const Tensor there = here.To(other);
      EXPECT_EQ(there.device(), other);
      EXPECT_EQ(there.SuggestFormat(), format);
      EXPECT_EQ(there.ToVector<float>(), host.ToVector<float>());
    }
    const Tensor target =
        Tensor::Empty({2, 3, 5, 7}, {.dtype = DType::kF64, .device = other});
    target.CopyFrom(here);
    EXPECT_EQ(target.ToVector<double>(),
              host.To(DType::kF64).ToVector<double>());
  }
}

}  // namespace
}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "core/cuda/memory.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/stream_use.h"
#include "tests/support/error_of.h"

// Which streams threads have: no GPU is asked.
namespace baton {
namespace {

using ::testing::HasSubstr;

const Device kGpu = Device::Cuda(0);

int IndexOfNewThread() {
  int index = 0;
  std::thread([&] { index = CurrentStream(kGpu).index(); }).join();
  return index;
}

TEST(ThreadStreams, TheMainThreadHasTheDefaultOne) {
  EXPECT_EQ(CurrentStream(kGpu), Stream::Default(kGpu));
}

TEST(ThreadStreams, EveryThreadOfAPoolHasOneOfItsOwn) {
  constexpr int kThreads = 4;
  Promise<void> go;
  std::vector<Future<int>> indices;
  std::atomic<int> waiting{0};
  ThreadPool pool(kThreads, "streams");  // ends before what its tasks use
  for (int i = 0; i < kThreads; ++i) {
    Promise<int> index;
    indices.push_back(index.future());
    pool.Post([&, index] {
      index.Set(CurrentStream(kGpu).index());
      EXPECT_EQ(CurrentStream(Device::Cuda(3)).index(),
                CurrentStream(kGpu).index());
      // Until all have begun, so that each has a thread.
      if (++waiting == kThreads) go.Set(absl::OkStatus());
      go.future().Await().IgnoreError();
    });
  }
  std::set<int> seen = {0};
  for (const auto& index : indices)
    EXPECT_TRUE(seen.insert(*index.Await()).second);
  std::set<int> dealt;
  for (int i = 0; i < 40; ++i) dealt.insert(Stream::Next(kGpu).index());
  EXPECT_EQ(dealt.size(), 31U);
  for (int index : seen) EXPECT_EQ(dealt.count(index), 0U) << index;
}

TEST(ThreadStreams, OfAThreadThatEndedIsTheNextOnes) {
  const int first = IndexOfNewThread();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(IndexOfNewThread(), first);
}

TEST(ThreadStreams, AScopeGivesTheThreadItsOwnBack) {
  std::thread([] {
    const Stream next = Stream::Next(kGpu);
    const Stream before = CurrentStream(kGpu);
    {
      const StreamScope scope(next);
      EXPECT_EQ(CurrentStream(kGpu), next);
    }
    EXPECT_EQ(CurrentStream(kGpu), before);
  }).join();
}

TEST(ThreadStreams, HaveCompanions) {
  std::thread([] {
    const Stream own = CurrentStream(kGpu);
    EXPECT_NE(Stream::Beside(own), own);
    EXPECT_NE(Stream::Beside(own), Stream::Beside(Stream::Default(kGpu)));
    EXPECT_EQ(Stream::Beside(Stream::Beside(own)), Stream::Beside(own));
  }).join();
}

TEST(StreamUse, OfWhatLiesOnAGpuHasNoStreamOfTheCpu) {
  const Stream cpu = Stream::Default(Device::Cpu());
  StreamUse on_gpu(Stream::Default(kGpu));
  EXPECT_THAT(test::ErrorOf([&] { on_gpu.Read(cpu); }),
              HasSubstr("the CPU cannot use what lies on cuda:0"));
  EXPECT_THAT(test::ErrorOf([&] { on_gpu.Write(cpu); }),
              HasSubstr("the CPU cannot use what lies on cuda:0"));
  EXPECT_TRUE(on_gpu.Guests().empty());
  on_gpu.Read(Stream::Default(kGpu));
  StreamUse pinned(cpu);
  EXPECT_EQ(test::ErrorOf([&] {
              pinned.Write(cpu);
              pinned.Read(cpu);
            }),
            "no error");
}

TEST(Streams, OnlyThoseOfAGpuAreAdopted) {
  EXPECT_THAT(
      test::ErrorOf([] { Stream::Adopt(Device::Cpu(), nullptr); }),
      HasSubstr("cpu has no stream to adopt: its work has ended when a call"));
  EXPECT_THAT(test::ErrorOf([] { Stream::Default(kGpu).Release(); }),
              HasSubstr("only an adopted stream can be released"));
  EXPECT_THAT(test::ErrorOf([] { Stream::Default(Device::Cpu()).Release(); }),
              HasSubstr("only an adopted stream can be released"));
  if (cuda::DeviceCount() > 0) return;  // with a GPU it can be
  EXPECT_NE(test::ErrorOf([] { Stream::Adopt(kGpu, nullptr); }), "no error");
}

TEST(AfterWork, IsCalledAtOnceOnTheCpu) {
  bool called = false;
  AfterWork(Stream::Default(Device::Cpu()),
            [&](const absl::Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/nccl.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "core/cuda/memory.h"
#include "core/future.h"
#include "tests/support/test_device.h"
#include "tests/support/within.h"

namespace baton::cuda {
namespace {

using testing::Within;

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kAMoment{50};

TEST(Nccl, WhatIsMissingIsSaid) {
  const auto version = NcclVersion();
  if (version.ok()) {
    EXPECT_EQ(version->substr(0, 2), "2.");
  } else {
    EXPECT_EQ(version.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(version.status().message(), "");
  }
  EXPECT_EQ(NcclVersion().status(), version.status()) << "opened once";
}

TEST(Nccl, AnIdOfAnotherSizeIsRefused) {
  for (const char* id : {"", "short"}) EXPECT_FALSE(JoinNccl(id, true, 0).ok());
}

class GpuLines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    if (DeviceCount() < 2) GTEST_SKIP() << "needs two GPUs";
    Join();
  }
  void Join() {
    const auto id = NewNcclId();
    ASSERT_TRUE(id.ok()) << id.status();
    const auto out = JoinNccl(*id, true, 0), in = JoinNccl(*id, false, 1);
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_TRUE(in.ok()) << in.status();
    out_ = *out;
    in_ = *in;
    ASSERT_TRUE(
        Within(kPatience, [&] { return IsOpen(*out_) && IsOpen(*in_); }));
  }
  static bool IsOpen(NcclLine& line) {
    const auto open = line.IsOpen();
    EXPECT_TRUE(open.ok()) << open.status();
    return open.ok() && *open;
  }
  static bool HaveEnded(NcclLine& line, uint64_t posts) {
    const auto ended = line.HaveEnded(posts);
    EXPECT_TRUE(ended.ok()) << ended.status();
    return ended.ok() && *ended;
  }
  static bool HasBeenGiven(NcclLine& line, uint64_t posts) {
    const auto given = line.HaveBeenGiven(posts);
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() && *given;
  }
  // The first tensor, for which both ends must be there.
  void Prove() {
    ASSERT_TRUE(out_->Post(On(0, 1000, 1)).ok());
    ASSERT_TRUE(in_->Post(On(1, 1000, -1)).ok());
    ASSERT_TRUE(Within(kPatience, [&] {
      const bool sent = HaveEnded(*out_, 1), came = HaveEnded(*in_, 1);
      return sent && came;
    }));
  }
  static Tensor On(int gpu, int64_t count, double value) {
    const Tensor made =
        Tensor::Full({count}, value, {.device = Device::Cuda(gpu)});
    Synchronize(Device::Cuda(gpu));
    return made;
  }

  std::shared_ptr<NcclLine> out_, in_;
};

TEST_F(GpuLines, TensorsComeInOrder) {
  // Made before: that would wait for what is under way.
  std::vector<Tensor> sources, targets;
  for (int i = 0; i < 100; ++i) {
    const int64_t count = 1 + 10'000 * (i % 7);
    sources.push_back(On(0, count, i));
    targets.push_back(On(1, count, -1));
  }
  for (size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(out_->Post(sources[i]).ok());
    ASSERT_TRUE(in_->Post(targets[i]).ok());
  }
  EXPECT_TRUE(Within(kPatience, [&] {
    // Both are asked, as that moves them on.
    const bool sent = HaveEnded(*out_, 100), came = HaveEnded(*in_, 100);
    return sent && came;
  }));
  for (int i = 0; i < 100; ++i) {
    const Tensor& target = targets[static_cast<size_t>(i)];
    const int64_t count = target.shape()[0];
    EXPECT_EQ(target.Slice(0, count - 1, count).Item(), i);
  }
}

TEST_F(GpuLines, UsersWaitForWhatIsReceived) {
  Prove();
  const Tensor source = On(0, 16 << 20, 3), target = On(1, 16 << 20, -1);
  ASSERT_TRUE(out_->Post(source).ok());
  ASSERT_TRUE(Within(kPatience, [&] { return HasBeenGiven(*out_, 2); }));
  ASSERT_TRUE(in_->Post(target).ok());
  ASSERT_TRUE(Within(kPatience, [&] { return HasBeenGiven(*in_, 2); }));
  EXPECT_EQ(target.Slice(0, (16 << 20) - 1, 16 << 20).Item(), 3);
  EXPECT_TRUE(Within(kPatience, [&] { return HaveEnded(*out_, 2); }));
}

TEST_F(GpuLines, WhatDidNotComeIsNoNumber) {
  Prove();
  const Tensor target = On(1, 1 << 20, -1);
  ASSERT_TRUE(in_->Post(target).ok());
  ASSERT_TRUE(Within(kPatience, [&] { return HasBeenGiven(*in_, 2); }));
  in_->Abort();
  const double first = target.Slice(0, 0, 1).Item();
  EXPECT_NE(first, first);
}

TEST_F(GpuLines, AnAbortEndsWhatNobodySends) {
  Prove();
  const Tensor target = On(1, 1 << 20, -1);
  ASSERT_TRUE(in_->Post(target).ok());
  // Its kernel runs until an end, as nobody sends.
  ASSERT_TRUE(Within(kPatience, [&] { return HasBeenGiven(*in_, 2); }));
  EXPECT_FALSE(HaveEnded(*in_, 2));
  const auto start = std::chrono::steady_clock::now();
  in_->Abort();
  Synchronize(Device::Cuda(1));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_FALSE(in_->HaveEnded(2).ok());
  EXPECT_FALSE(in_->Post(target).ok());
}

TEST_F(GpuLines, AnAbortEndsWhatNobodyTakes) {
  Prove();
  ASSERT_TRUE(out_->Post(On(0, 16 << 20, 1)).ok());
  // Its kernel runs until an end, as nobody takes it: 64 MB are more than NCCL
  // holds between the two.
  ASSERT_TRUE(Within(kPatience, [&] { return HasBeenGiven(*out_, 2); }));
  EXPECT_FALSE(HaveEnded(*out_, 2));
  const auto start = std::chrono::steady_clock::now();
  out_->Abort();
  Synchronize(Device::Cuda(0));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// A call that waits for an idle GPU holds up a launch, for which another line's
// receive is in the way.
TEST_F(GpuLines, AnAbortWaitsForNoLaunch) {
  Prove();
  const auto other_out = out_, other_in = in_;
  Join();
  Prove();
  const Tensor targets[] = {On(1, 1000, -1), On(1, 1000, -1), On(1, 1000, -1)};
  (void)On(1, 1 << 20, 0);  // to be released
  ASSERT_TRUE(in_->Post(targets[0]).ok());
  ASSERT_TRUE(other_in->Post(targets[1]).ok());
  ASSERT_TRUE(Within(kPatience, [&] {
    return HasBeenGiven(*in_, 2) && HasBeenGiven(*other_in, 2);
  }));
  // The kernels of the receives run until they are aborted, as nobody sends,
  // and so long the GPU is not idle. The driver tells nobody that it keeps a
  // call waiting: each gets a moment in which it would return otherwise.
  const Promise<void> freed, launched;
  std::thread frees([&] {
    ReleaseCached(1);
    freed.Set(absl::OkStatus());
  });
  freed.future().Await(kAMoment).IgnoreError();
  std::thread launches([&] { launched.Set(in_->Post(targets[2])); });
  launched.future().Await(kAMoment).IgnoreError();
  const auto start = std::chrono::steady_clock::now();
  for (NcclLine* line : {in_.get(), other_in.get()}) line->Close();
  std::thread aborts([&] { other_in->Abort(); });
  in_->Abort();
  for (std::thread* thread : {&aborts, &launches, &frees}) thread->join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace baton::cuda

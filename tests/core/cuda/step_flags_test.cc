// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/step_flags.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "core/graph.h"
#include "core/tensor.h"
#include "tests/support/test_device.h"

// Between two streams of one GPU; tests/models/distributed has two processes.
namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

class GpuStepFlags : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    flags_ = Tensor::Zeros({8}, {.dtype = DType::kI64, .device = device_});
    value_ = Tensor::Zeros({1 << 20}, {.device = device_});
    copy_ = Tensor::Zeros({1 << 20}, {.device = device_});
    Synchronize(device_);
  }
  // That of flag 0.
  uint64_t* flag() const { return static_cast<uint64_t*>(flags_.raw_data()); }
  static void Await(const uint64_t* flag, const StepNumber& step,
                    const Stream& stream) {
    EXPECT_TRUE(AwaitFlag(flag, step, stream, Clock::time_point::max()));
  }
  float First(const Tensor& x) const { return x.ToVector<float>().front(); }

  const Device device_ = Device::Cuda(0);
  const Stream sender_ = Stream::Next(device_);
  const Stream waiter_ = Stream::Next(device_);
  Tensor flags_, value_, copy_;
};

TEST_F(GpuStepFlags, AStreamWaitsForAnotherOnesFlag) {
  StepNumber step(device_);
  for (uint64_t number = 1; number <= 50; ++number) {
    step.Begin(number);
    Await(flag(), step, waiter_);
    Event ended(device_);
    ended.Record(waiter_);
    EXPECT_FALSE(ended.HasEnded());
    RaiseFlag(flag(), step, sender_);
    waiter_.Synchronize();
    sender_.Synchronize();
    EXPECT_FALSE(step.given_up(number));
  }
}

TEST_F(GpuStepFlags, TheHostEndsAWaitThatNobodyEnds) {
  StepNumber step(device_);
  step.Begin(3);
  Await(flag(), step, waiter_);
  RaiseFlag(flag() + 1, step, waiter_);
  Event ended(device_);
  ended.Record(waiter_);
  step.GiveUp(2);
  EXPECT_FALSE(ended.HasEnded());
  const auto begin = Clock::now();
  step.GiveUp(3);
  ended.Synchronize();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_TRUE(step.given_up(3));
  // What comes after such a wait raises nothing.
  EXPECT_EQ(flags_.ToVector<int64_t>()[1], 0);
  step.Begin(4);
  RaiseFlag(flag(), step, sender_);
  Await(flag(), step, waiter_);
  waiter_.Synchronize();
  EXPECT_FALSE(step.given_up(4));
}

TEST_F(GpuStepFlags, ARecordingReadsEachStepsNumber) {
  StepNumber step(device_);
  const Graph sends = Graph::Record({device_}, [&] {
    value_.CopyFrom(copy_);
    RaiseFlag(flag(), step, CurrentStream(device_));
  });
  const Graph waits = Graph::Record({device_}, [&] {
    Await(flag(), step, CurrentStream(device_));
    RaiseFlag(flag() + 1, step, CurrentStream(device_));
  });
  for (uint64_t number = 1; number <= 20; ++number) {
    step.Begin(number);
    Event ended(device_);
    {
      const StreamScope scope(waiter_);
      waits.Replay();
      ended.Record(waiter_);
    }
    EXPECT_FALSE(ended.HasEnded());
    {
      const StreamScope scope(sender_);
      sends.Replay();
    }
    waiter_.Synchronize();
    sender_.Synchronize();
    EXPECT_EQ(flags_.ToVector<int64_t>()[1], static_cast<int64_t>(number));
  }
}

}  // namespace
}  // namespace baton

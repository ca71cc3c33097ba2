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

TEST_F(GpuStepFlags, StepsMayBeGivenInTheOrderOfTheirStream) {
  StepNumber step(device_), sent(device_);
  Event first(device_), second(device_);
  for (uint64_t number = 1; number <= 2; ++number) {
    step.Begin(number, waiter_);
    Await(flag(), step, waiter_);
    (number == 1 ? first : second).Record(waiter_);
  }
  EXPECT_FALSE(first.HasEnded());
  sent.Begin(1);
  RaiseFlag(flag(), sent, sender_);
  first.Synchronize();
  EXPECT_FALSE(second.HasEnded());
  sender_.Synchronize();
  sent.Begin(2);
  RaiseFlag(flag(), sent, sender_);
  second.Synchronize();
}

// Whose word the flag is decides alone; without a flag it is this host's.
TEST_F(GpuStepFlags, AStepCountsByTheFlagOrUnlessItIsGivenUp) {
  StepNumber step(device_);
  const Tensor skip = Tensor::Zeros({}, {.device = device_});
  const StreamScope scope(waiter_);
  step.Begin(1);
  DecideStep(nullptr, step, skip);
  RaiseFlagUnless(skip, flag(), step);
  EXPECT_EQ(skip.Item(), 0);
  EXPECT_EQ(step.decided(), 1u);
  EXPECT_EQ(flags_.ToVector<int64_t>()[0], 1);

  step.Begin(2);
  step.GiveUp(2);
  DecideStep(nullptr, step, skip);
  RaiseFlagUnless(skip, flag(), step);
  EXPECT_EQ(skip.Item(), 1);
  EXPECT_EQ(step.decided(), 1u);
  EXPECT_EQ(flags_.ToVector<int64_t>()[0], 1);

  // A flag that was raised before it was given up.
  flags_.Fill(2);
  DecideStep(flag(), step, skip);
  EXPECT_EQ(skip.Item(), 0);
  EXPECT_EQ(step.decided(), 2u);
}

}  // namespace
}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/step_flags.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <thread>

#include "core/status.h"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLong{30};

const Stream kCpu = Stream::Default(Device::Cpu());

Clock::time_point InALongTime() { return Clock::now() + kLong; }

// A flag at two addresses, as two processes have it.
class SharedFlag {
 public:
  SharedFlag() {
    const int fd = memfd_create("flag", MFD_CLOEXEC);
    BATON_CHECK(fd >= 0 && ftruncate(fd, kBytes) == 0);
    for (uint64_t*& side : sides_) {
      side = static_cast<uint64_t*>(
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    }
    close(fd);
  }
  ~SharedFlag() {
    for (uint64_t* side : sides_) munmap(side, kBytes);
  }
  uint64_t* raisers() { return sides_[0]; }
  uint64_t* waiters() { return sides_[1]; }

 private:
  static constexpr size_t kBytes = 4096;
  uint64_t* sides_[2] = {};
};

TEST(StepFlags, AWaitEndsWhenTheOtherSideRaisesTheFlag) {
  SharedFlag flag;
  StepNumber here(Device::Cpu()), there(Device::Cpu());
  for (uint64_t step = 1; step <= 100; ++step) {
    here.Begin(step);
    there.Begin(step);
    auto waiting = std::async(std::launch::async, [&] {
      return AwaitFlag(flag.waiters(), here, kCpu, InALongTime());
    });
    RaiseFlag(flag.raisers(), there, kCpu);
    EXPECT_TRUE(waiting.get());
    EXPECT_EQ(*flag.waiters(), step);
    EXPECT_FALSE(here.given_up(step));
  }
}

TEST(StepFlags, AFlagOfAnEarlierStepEndsNoWait) {
  uint64_t flag = 0;
  StepNumber step(Device::Cpu());
  step.Begin(4);
  RaiseFlag(&flag, step, kCpu);
  step.Begin(5);
  EXPECT_FALSE(AwaitFlag(&flag, step, kCpu,
                         Clock::now() + std::chrono::milliseconds(20)));
  step.Begin(4);
  EXPECT_TRUE(AwaitFlag(&flag, step, kCpu, InALongTime()));
}

TEST(StepFlags, GivingAStepUpEndsItsWaitsAndKeepsItsFlagsDown) {
  uint64_t awaited = 0, raised = 0;
  StepNumber step(Device::Cpu());
  step.Begin(7);
  auto waiting = std::async(std::launch::async, [&] {
    const auto begin = Clock::now();
    EXPECT_TRUE(AwaitFlag(&awaited, step, kCpu, InALongTime()));
    RaiseFlag(&raised, step, kCpu);
    return Clock::now() - begin;
  });
  step.GiveUp(6);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  EXPECT_FALSE(step.given_up(7));
  step.GiveUp(7);
  EXPECT_LT(waiting.get(), kLong / 2);
  EXPECT_TRUE(step.given_up(7));
  EXPECT_EQ(raised, 0U);
}

TEST(StepFlags, TheStepAfterOneThatWasGivenUpGoesOn) {
  uint64_t flag = 0;
  StepNumber step(Device::Cpu());
  step.Begin(1);
  step.GiveUp(1);
  EXPECT_TRUE(AwaitFlag(&flag, step, kCpu, InALongTime()));
  step.GiveUp(0);
  EXPECT_TRUE(step.given_up(1));
  step.Begin(2);
  RaiseFlag(&flag, step, kCpu);
  EXPECT_TRUE(AwaitFlag(&flag, step, kCpu, InALongTime()));
  EXPECT_FALSE(step.given_up(2));
}

TEST(StepFlags, WhatWasWrittenBeforeIsSeenAfterTheWait) {
  SharedFlag flag;
  StepNumber step(Device::Cpu());
  uint64_t* const written = flag.raisers() + 8;
  const uint64_t* const read = flag.waiters() + 8;
  std::thread writer([&] {
    StepNumber own(Device::Cpu());
    for (uint64_t i = 1; i <= 1000; ++i) {
      own.Begin(2 * i - 1);
      *written = i;
      RaiseFlag(flag.raisers(), own, kCpu);
      own.Begin(2 * i);
      EXPECT_TRUE(AwaitFlag(flag.raisers(), own, kCpu, InALongTime()));
    }
  });
  for (uint64_t i = 1; i <= 1000; ++i) {
    step.Begin(2 * i - 1);
    ASSERT_TRUE(AwaitFlag(flag.waiters(), step, kCpu, InALongTime()));
    EXPECT_EQ(*read, i);
    step.Begin(2 * i);
    RaiseFlag(flag.waiters(), step, kCpu);
  }
  writer.join();
}

}  // namespace
}  // namespace baton

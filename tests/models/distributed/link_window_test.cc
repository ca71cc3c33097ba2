// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/link_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/tensor.h"
#include "models/distributed/schedules.h"
#include "tests/support/error_of.h"
#include "tests/support/status_matchers.h"

// Within one process, whose windows are the CPU's; pipeline_processes_test.cc
// has those of GPUs.
namespace baton::dist {
namespace {

using test::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLong{30};

Workload OneStageAWorker(int stages, int micro_batches) {
  Workload work;
  for (int i = 0; i < stages; ++i) work.worker_of_stage.push_back(i);
  work.micro_batches = micro_batches;
  return work;
}

std::vector<int32_t> SlotsBy(const std::string& schedule, int stage) {
  ScheduleChoice choice;
  choice.name = schedule;
  const auto made = MakeSchedule(choice, OneStageAWorker(3, 5));
  EXPECT_THAT(made, IsOk());
  StepPlan plan;
  plan.program = made->workers[static_cast<size_t>(stage)];
  plan.micro_batches.assign(5, 1);
  return SlotsOf(plan, stage, Device::Cpu());
}

TEST(SlotsOf, AMicroBatchTakesTheSlotOfOneWhoseGradientCameBack) {
  EXPECT_THAT(SlotsBy("gpipe", 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(SlotsBy("1f1b", 0), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(SlotsBy("1f1b", 1), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(SlotsBy("1f1b", 2), ElementsAre(0, 0, 0, 0, 0));
}

// What two micro-batches, the second a ragged one, pass: two values, of which
// one is channels-last and one has no gradient.
Values MakeOutputs(int64_t rows, uint64_t seed) {
  Generator generator(seed);
  return {RandNormal({rows, 3, 4, 5}, generator)
              .Contiguous(MemoryFormat::kChannelsLast),
          RandInt(0, 9, {rows}, generator)};
}
Values MakeGradients(int64_t rows, uint64_t seed) {
  Generator generator(seed);
  return {RandNormal({rows, 3, 4, 5}, generator), Tensor()};
}

TEST(ParcelLayout, ASlotIsAsLargeAsWhatItHolds) {
  const auto bytes = [](std::vector<int64_t> rows, std::vector<int32_t> slots) {
    std::vector<ParcelSpec> parcels;
    for (const int64_t each : rows)
      parcels.push_back({ValueSpec::Of(Tensor::Zeros({each, 1024}))});
    return ParcelLayout(std::move(parcels), std::move(slots)).bytes();
  };
  const size_t one = bytes({1}, {0});
  constexpr size_t kRow = 1024 * sizeof(float);
  EXPECT_EQ(bytes({1, 3, 4}, {0, 1, 2}) - one, 7 * kRow);
  EXPECT_EQ(bytes({3, 1, 4}, {0, 0, 1}) - one, 6 * kRow);
}

ParcelLayout LayoutOf(Values (*make)(int64_t, uint64_t)) {
  return ParcelLayout({SpecOf({make(4, 0), {}}), SpecOf({make(3, 0), {}})},
                      {0, 0});
}

void ExpectTaken(const absl::StatusOr<Outputs>& taken, const Values& wanted) {
  ASSERT_THAT(taken, IsOk());
  const Values& got = taken->values;
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].defined(), wanted[i].defined());
    if (!wanted[i].defined()) continue;
    EXPECT_TRUE(ops::BitEqual(got[i], wanted[i])) << i;
    EXPECT_EQ(got[i].strides(), wanted[i].strides()) << i;
  }
}

// Both ends of a link.
class LinkWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ParcelLayout outputs = LayoutOf(MakeOutputs),
                       back = LayoutOf(MakeGradients);
    auto inputs = Window::Make(Device::Cpu(), outputs.bytes());
    auto gradients = Window::Make(Device::Cpu(), back.bytes());
    ASSERT_THAT(inputs, IsOk());
    ASSERT_THAT(gradients, IsOk());
    auto to = Window::Open(inputs->handle(), Device::Cpu());
    auto from = Window::Open(gradients->handle(), Device::Cpu());
    ASSERT_THAT(to, IsOk());
    ASSERT_THAT(from, IsOk());
    EXPECT_THAT(inputs->CheckOpened(), IsOk());
    front_ = std::make_unique<LinkWindow>(
        LinkWindow::Side{*std::move(gradients), back},
        LinkWindow::Side{*std::move(to), outputs},
        std::make_shared<StepNumber>(Device::Cpu()));
    back_ = std::make_unique<LinkWindow>(
        LinkWindow::Side{*std::move(inputs), outputs},
        LinkWindow::Side{*std::move(from), back},
        std::make_shared<StepNumber>(Device::Cpu()));
  }
  static Clock::time_point InALongTime() { return Clock::now() + kLong; }

  std::unique_ptr<LinkWindow> front_, back_;
};

TEST_F(LinkWindowTest, ValuesArriveAsTheyWereStepAfterStep) {
  std::thread behind([&] {
    for (uint64_t step = 1; step <= 20; ++step) {
      back_->Begin(step);
      for (int m = 0; m < 2; ++m) {
        ExpectTaken(back_->Take(m, InALongTime()), MakeOutputs(4 - m, step));
        EXPECT_THAT(back_->Send(m, {MakeGradients(4 - m, step), {}}), IsOk());
      }
    }
  });
  for (uint64_t step = 1; step <= 20; ++step) {
    front_->Begin(step);
    for (int m = 0; m < 2; ++m) {
      EXPECT_THAT(front_->Send(m, {MakeOutputs(4 - m, step), {}}), IsOk());
      ExpectTaken(front_->Take(m, InALongTime()), MakeGradients(4 - m, step));
    }
  }
  behind.join();
}

TEST_F(LinkWindowTest, WhatIsTakenIsTheTakersOwn) {
  front_->Begin(1);
  back_->Begin(1);
  ASSERT_THAT(front_->Send(0, {MakeOutputs(4, 1), {}}), IsOk());
  const auto taken = back_->Take(0, InALongTime());
  // Into the same slot.
  ASSERT_THAT(front_->Send(1, {MakeOutputs(3, 2), {}}), IsOk());
  ExpectTaken(taken, MakeOutputs(4, 1));
}

TEST_F(LinkWindowTest, AStepThatIsGivenUpWaitsNoMoreAndLeavesTheNextAlone) {
  for (LinkWindow* end : {front_.get(), back_.get()}) end->Begin(1);
  auto waiting = std::async(std::launch::async, [&] {
    return back_->Take(0, InALongTime()).status();
  });
  back_->GiveUp(1);
  EXPECT_TRUE(absl::IsCancelled(waiting.get()));
  // The other end has not heard of it: what it sends is of that step.
  EXPECT_THAT(front_->Send(0, {MakeOutputs(4, 1), {}}), IsOk());
  for (LinkWindow* end : {front_.get(), back_.get()}) end->Begin(2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      back_->Take(0, Clock::now() + std::chrono::milliseconds(5)).status()));
  EXPECT_THAT(front_->Send(0, {MakeOutputs(4, 2), {}}), IsOk());
  ExpectTaken(back_->Take(0, InALongTime()), MakeOutputs(4, 2));
}

TEST_F(LinkWindowTest, WhoGaveUpTellsTheOtherEndNothing) {
  for (LinkWindow* end : {front_.get(), back_.get()}) end->Begin(1);
  front_->GiveUp(1);
  EXPECT_THAT(front_->Send(0, {MakeOutputs(4, 1), {}}), IsOk());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      back_->Take(0, Clock::now() + std::chrono::milliseconds(5)).status()));
}

TEST_F(LinkWindowTest, OtherShapesAreRefusedWithTheRemedy) {
  front_->Begin(1);
  for (const Values& values :
       {MakeOutputs(3, 1), Values{MakeOutputs(4, 1)[0]}, MakeGradients(4, 1)}) {
    const absl::Status status = front_->Send(0, {values, {}});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Windows::kOff"));
  }
}

TEST(ValueSpec, AConstantMustStayOne) {
  ValueSpec variable = ValueSpec::Of(Tensor::Ones({2})), constant = variable;
  constant.constant = true;
  EXPECT_TRUE(variable.Fits(constant));
  EXPECT_TRUE(constant.Fits(constant));
  EXPECT_FALSE(constant.Fits(variable));
}

TEST(Window, IsOpenedOnlyByWhatItsMakerSays) {
  const auto made = Window::Make(Device::Cpu(), 4096);
  ASSERT_THAT(made, IsOk());
  EXPECT_TRUE(absl::IsUnavailable(made->CheckOpened()));
  const auto why = [](const WindowHandle& handle) {
    const absl::Status status = Window::Open(handle, Device::Cpu()).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  WindowHandle other = made->handle();
  other.machine = "elsewhere";
  EXPECT_THAT(why(other), HasSubstr("two machines"));
  other = made->handle();
  other.segment = "a handle of CUDA";
  EXPECT_THAT(why(other), HasSubstr("on a GPU"));
  other = made->handle();
  other.descriptor = 1 << 20;
  EXPECT_THAT(why(other), HasSubstr("No such file"));
  other = made->handle();
  ++other.file;
  EXPECT_THAT(why(other), HasSubstr("different processes"));
  other = made->handle();
  other.bytes *= 2;
  EXPECT_THAT(why(other), HasSubstr("bytes"));
  other = made->handle();
  ++other.proof;
  EXPECT_THAT(why(other), HasSubstr("does not show"));
  EXPECT_TRUE(absl::IsUnavailable(made->CheckOpened()));
  EXPECT_THAT(Window::Open(made->handle(), Device::Cpu()), IsOk());
  EXPECT_THAT(made->CheckOpened(), IsOk());
}

void Layout(const std::vector<ParcelSpec>& parcels,
            const std::vector<int32_t>& slots) {
  const ParcelLayout layout(parcels, slots);
}

TEST(ParcelLayout, RefusesWhatAPeerMakesUp) {
  const ValueSpec good = {true, DType::kF32, {4, 4}, false};
  const auto error = [](const ValueSpec& spec, int32_t slot) {
    return ErrorOf([&] { Layout({ParcelSpec{spec}}, {slot}); });
  };
  EXPECT_THAT(error(good, 1), HasSubstr("slot 1 of 1"));
  EXPECT_THAT(error(good, -1), HasSubstr("slot -1 of 1"));
  ValueSpec bad = good;
  bad.shape = {-1, 4};
  EXPECT_THAT(error(bad, 0), HasSubstr("[-1, 4]"));
  bad.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(error(bad, 0), HasSubstr("values of shape"));
  bad = good;
  bad.dtype = static_cast<DType>(77);
  EXPECT_THAT(error(bad, 0), HasSubstr("unknown dtype 77"));
  bad = good;
  bad.channels_last = true;
  EXPECT_THAT(error(bad, 0), HasSubstr("channels-last"));
  EXPECT_THAT(ErrorOf([&] { Layout({ParcelSpec{good}}, {}); }),
              HasSubstr("1 micro-batches for 0 slots"));
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/train_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/future.h"
#include "core/status.h"
#include "tests/support/status_matchers.h"

namespace baton::examples {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;

TrainingBatch BatchOf(int64_t rows) {
  return {Tensor::Zeros({rows, 1}), Tensor::Zeros({rows, 1})};
}

// One whose steps end when the test says so.
class PromisedModel final : public Trainable {
 public:
  absl::StatusOr<double> TrainStep(const TrainingBatch& batch) override {
    RETURN_IF_ERROR(BeginStep(batch));
    return AwaitStep();
  }
  size_t most_under_way() const override { return 2; }
  absl::Status BeginStep(const TrainingBatch&) override {
    if (!refusal.ok()) return refusal;
    ++begun_;
    most_begun = std::max(most_begun, begun_ - awaited_);
    return absl::OkStatus();
  }
  absl::StatusOr<double> AwaitStep() override {
    return steps[awaited_++].future().Await(kNoLimit);
  }
  size_t begun() const { return begun_; }
  size_t awaited() const { return awaited_; }

  std::vector<Promise<double>> steps = std::vector<Promise<double>>(8);
  absl::Status refusal;  // of BeginStep
  size_t most_begun = 0;

 private:
  size_t begun_ = 0;
  size_t awaited_ = 0;
};

// What a test is told.
struct Told {
  std::vector<double> losses;
  std::vector<int64_t> rows;
  TrainSteps::OnDone Listen() {
    return [this](const TrainSteps::Done& step) {
      losses.push_back(step.loss);
      rows.push_back(step.rows);
      EXPECT_GE(step.seconds, 0);
      return absl::OkStatus();
    };
  }
};

TEST(TrainSteps, TwoAreUnderWayAndLossesComeInTheirOrder) {
  PromisedModel model;
  Told told;
  TrainSteps steps(model, told.Listen());
  ASSERT_THAT(steps.Begin(BatchOf(1)), IsOk());
  ASSERT_THAT(steps.Begin(BatchOf(2)), IsOk());
  EXPECT_EQ(model.begun(), 2u);
  EXPECT_EQ(steps.under_way(), 2);
  EXPECT_THAT(told.losses, ElementsAre());
  std::thread ender([&] { model.steps[0].Set(0.1); });
  ASSERT_THAT(steps.Begin(BatchOf(3)), IsOk());
  ender.join();
  EXPECT_EQ(model.begun(), 3u);
  EXPECT_EQ(model.most_begun, 2u);
  std::thread finisher([&] {
    model.steps[2].Set(0.3);
    model.steps[1].Set(0.2);
  });
  ASSERT_THAT(steps.Finish(), IsOk());
  finisher.join();
  EXPECT_EQ(steps.under_way(), 0);
  EXPECT_THAT(told.losses, ElementsAre(0.1, 0.2, 0.3));
  EXPECT_THAT(told.rows, ElementsAre(1, 2, 3));
}

TEST(TrainSteps, EndWithTheFirstErrorOnceNoneIsUnderWay) {
  PromisedModel model;
  Told told;
  TrainSteps steps(model, told.Listen());
  ASSERT_THAT(steps.Begin(BatchOf(1)), IsOk());
  ASSERT_THAT(steps.Begin(BatchOf(1)), IsOk());
  model.steps[0].Set(absl::UnavailableError("bob is lost"));
  std::thread ender(
      [&] { model.steps[1].Set(absl::AbortedError("the step before broke")); });
  const absl::Status broken = steps.Begin(BatchOf(1));
  EXPECT_TRUE(model.steps[1].future().ready());
  ender.join();
  EXPECT_EQ(broken, absl::UnavailableError("bob is lost"));
  EXPECT_EQ(steps.under_way(), 0);
  EXPECT_EQ(steps.Begin(BatchOf(1)), broken);
  EXPECT_EQ(steps.Finish(), broken);
  EXPECT_EQ(model.begun(), 2u);
  EXPECT_THAT(told.losses, ElementsAre());
}

TEST(TrainSteps, EndWithAnErrorOfWhoIsTold) {
  PromisedModel model;
  const absl::Status full = absl::UnavailableError("the disk is full");
  TrainSteps steps(model, [&](const TrainSteps::Done&) { return full; });
  for (Promise<double>& step : model.steps) step.Set(0.1);
  EXPECT_THAT(steps.Begin(BatchOf(1)), IsOk());
  EXPECT_THAT(steps.Begin(BatchOf(1)), IsOk());
  EXPECT_EQ(steps.Begin(BatchOf(1)), full);
  EXPECT_EQ(steps.Begin(BatchOf(1)), full);
  EXPECT_EQ(model.begun(), 2u);
  EXPECT_EQ(model.awaited(), 2u);
}

TEST(TrainSteps, EndWithTheErrorOfAStepThatCannotBegin) {
  PromisedModel model;
  Told told;
  TrainSteps steps(model, told.Listen());
  ASSERT_THAT(steps.Begin(BatchOf(1)), IsOk());
  model.refusal = absl::DataLossError("bob and carol are lost");
  model.steps[0].Set(0.1);
  EXPECT_EQ(steps.Begin(BatchOf(1)), model.refusal);
  EXPECT_EQ(model.awaited(), 1u);
  EXPECT_EQ(steps.under_way(), 0);
  EXPECT_EQ(steps.Finish(), model.refusal);
}

TEST(TrainSteps, AreOverWhenTheyAreDropped) {
  PromisedModel model;
  Told told;
  std::atomic<bool> over{false};
  std::thread ender;
  {
    TrainSteps steps(model, told.Listen());
    ASSERT_THAT(steps.Begin(BatchOf(1)), IsOk());
    ender = std::thread([&] {
      over = true;
      model.steps[0].Set(0.1);
    });
  }
  EXPECT_TRUE(over);
  ender.join();
}

// As that of a model in this process.
class PlainModel final : public Trainable {
 public:
  absl::StatusOr<double> TrainStep(const TrainingBatch&) override {
    return ++steps_;
  }

 private:
  int steps_ = 0;
};

TEST(TrainSteps, AModelMayHaveNoneUnderWay) {
  PlainModel model;
  Told told;
  TrainSteps steps(model, told.Listen());
  for (int step = 1; step <= 3; ++step) {
    ASSERT_THAT(steps.Begin(BatchOf(step)), IsOk());
    EXPECT_EQ(steps.under_way(), 0);
    EXPECT_EQ(told.losses.size(), static_cast<size_t>(step));
  }
  EXPECT_THAT(steps.Finish(), IsOk());
  EXPECT_THAT(told.losses, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace baton::examples

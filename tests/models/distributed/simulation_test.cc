// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

Schedule OfTwo() {
  return ParseSchedule(
             "schedule x\n"
             "worker 0: 0F0 0F1 0BW0 0BW1\n"
             "worker 1: 1F0 1B0 1F1 1W0 1BW1\n")
      .value();
}

Workload WorkOfTwo() {
  Workload work;
  work.worker_of_stage = {0, 1};
  work.micro_batches = 2;
  work.costs = {{2, 3, 1}, {1, 2, 4}};
  return work;
}

std::string Times(const Simulation& simulation) {
  std::string text;
  for (const auto& [worker, step, begin, end] : simulation.order)
    absl::StrAppend(&text, " ", ToString(step), ":", begin, "-", end);
  return text;
}

TEST(Simulation, EachBeginsOnceWhatItNeedsIsThere) {
  const Simulation simulation = Simulate(OfTwo(), WorkOfTwo()).value();
  EXPECT_EQ(Times(simulation),
            " 0F0:0-2 1F0:2-3 0F1:2-4 1B0:3-5 0BW0:5-9 1F1:5-6 1W0:6-10"
            " 1BW1:10-16 0BW1:16-20");
  EXPECT_EQ(simulation.makespan, 20);
  EXPECT_EQ(simulation.busy, (std::vector<double>{12, 14}));
  EXPECT_DOUBLE_EQ(simulation.bubble(0), 1 - 12. / 20);
  EXPECT_DOUBLE_EQ(simulation.bubble(), 1 - 26. / 40);
}

TEST(Simulation, LinksAndSizesCount) {
  Workload work = WorkOfTwo();
  work.link = 0.5;
  work.sizes = {1, 2};
  EXPECT_EQ(Times(Simulate(OfTwo(), work).value()),
            " 0F0:0-2 0F1:2-6 1F0:2.5-3.5 1B0:3.5-5.5 0BW0:6-10 1F1:6.5-8.5"
            " 1W0:8.5-12.5 1BW1:12.5-24.5 0BW1:25-33");
}

// Forwards of 1 s whose outputs take the link 3 s each; gradients come back by
// themselves.
TEST(Simulation, ALinkCarriesOneAfterTheOther) {
  Workload work = WorkOfTwo();
  work.costs = {{1, 1, 0}, {1, 1, 0}};
  work.transfers = {3};
  work.link = 0.5;
  const Schedule schedule = ParseSchedule(
                                "schedule x\n"
                                "worker 0: 0F0 0F1 0BW0 0BW1\n"
                                "worker 1: 1F0 1BW0 1F1 1BW1\n")
                                .value();
  EXPECT_EQ(Times(Simulate(schedule, work).value()),
            " 0F0:0-1 0F1:1-2 1F0:4.5-5.5 1BW0:5.5-6.5 1F1:7.5-8.5"
            " 1BW1:8.5-9.5 0BW0:10-11 0BW1:13-14");
  work.worker_of_stage = {0, 0};  // what stays at a worker needs no link
  const Schedule alone =
      ParseSchedule(
          "schedule x\nworker 0: 0F0 1F0 1BW0 0BW0 0F1 1F1 1BW1 0BW1\n")
          .value();
  EXPECT_EQ(Simulate(alone, work).value().makespan, 8);
}

// A gradient is sent before the last second of its BW; each worker begins 10 s
// late and rests for a second after each instruction.
TEST(Simulation, WhatComesBeforeBetweenAndBehindCounts) {
  Workload work = WorkOfTwo();
  work.micro_batches = 1;
  work.costs = {{1, 1, 1}, {1, 2, 1}};
  work.tails = {0, 1};
  work.start = 10;
  work.gap = 1;
  const Schedule schedule = ParseSchedule(
                                "schedule x\n"
                                "worker 0: 0F0 0BW0\n"
                                "worker 1: 1F0 1BW0\n")
                                .value();
  EXPECT_EQ(Times(Simulate(schedule, work).value()),
            " 0F0:10-11 1F0:11-12 1BW0:13-16 0BW0:15-17");
  work.tails = {1};
  EXPECT_THAT(std::string(Simulate(schedule, work).status().message()),
              ::testing::HasSubstr("1 tails of 2 stages"));
  work.tails.clear();
  work.gap = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(Simulate(schedule, work).status()));
}

TEST(Simulation, RefusesTransfersThatFitNoStages) {
  Workload work = WorkOfTwo();
  work.transfers = {1, 1};
  EXPECT_THAT(std::string(Simulate(OfTwo(), work).status().message()),
              ::testing::HasSubstr("2 transfers between 2 stages"));
  work.transfers = {-1};
  EXPECT_EQ(Simulate(OfTwo(), work).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Simulation, ActivationsStayUntilTheGradientsOfWeights) {
  const Simulation simulation = Simulate(OfTwo(), WorkOfTwo()).value();
  EXPECT_EQ(simulation.peak_held, (std::vector<double>{2, 2}));
  EXPECT_EQ(simulation.most_held(), 2);
  // Of two stages at one worker each counts half.
  Workload alone = WorkOfTwo();
  alone.worker_of_stage = {0, 0};
  const Schedule schedule =
      ParseSchedule(
          "schedule x\n"
          "worker 0: 0F0 1F0 1BW0 0F1 0BW0 1F1 1BW1 0BW1\n")
          .value();
  EXPECT_EQ(Simulate(schedule, alone)->peak_held, (std::vector<double>{1}));
}

TEST(Simulation, RefusesWhatDoesNotGoTogether) {
  const auto refused = [](const Workload& work) {
    return absl::IsInvalidArgument(Simulate(OfTwo(), work).status());
  };
  Workload work = WorkOfTwo();
  work.micro_batches = 3;
  EXPECT_TRUE(refused(work));
  work = WorkOfTwo();
  work.worker_of_stage = {0, 0};
  EXPECT_TRUE(refused(work));
  work.worker_of_stage = {0, 2};
  EXPECT_TRUE(refused(work));
  work.worker_of_stage = {};
  EXPECT_TRUE(refused(work));
  work = WorkOfTwo();
  work.costs.pop_back();
  EXPECT_TRUE(refused(work));
  work = WorkOfTwo();
  work.sizes = {1};
  EXPECT_TRUE(refused(work));
  work.sizes = {1, -1};
  EXPECT_TRUE(refused(work));
  EXPECT_FALSE(refused(WorkOfTwo()));
}

TEST(CostMeter, GivesTheMeanOfAMicroBatchOfSizeOne) {
  CostMeter meter(2);
  meter.Add({StageOp::kForward, 0, 0}, 1, 4);
  meter.Add({StageOp::kForward, 0, 1}, 3, 4);
  meter.Add({StageOp::kBackward, 0, 0}, 1, 9);
  meter.Add({StageOp::kInputGrad, 1, 0}, 2, 6);
  meter.Add({StageOp::kWeightGrad, 1, 0}, 2, 8);
  const std::vector<StageCosts> costs = meter.Mean();
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_EQ(costs[0].forward, 2);
  EXPECT_EQ(costs[0].input_grad, 6);
  EXPECT_EQ(costs[0].weight_grad, 3);
  EXPECT_EQ(costs[1].forward, 0);
  EXPECT_EQ(costs[1].of(StageOp::kBackward), 7);
}

TEST(CostMeter, GivesTheMeanCopyBehindEachStage) {
  CostMeter meter(3);
  EXPECT_TRUE(meter.Transfers().empty());
  meter.AddCopy(0, 1, 2);
  meter.AddCopy(1, 0, 4);
  meter.AddCopy(0, 2, 100);  // skips a stage
  meter.AddCopy(7, 8, 100);  // no such stages
  meter.AddCopy(-1, 0, 100);
  EXPECT_EQ(meter.Transfers(), (std::vector<double>{3, 0}));
}

}  // namespace
}  // namespace baton::dist

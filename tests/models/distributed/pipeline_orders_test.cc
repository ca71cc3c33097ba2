// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

// In which order the stages of a pipeline compute.
namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Whether an instruction, as "1B2", runs in the program's order: on a GPU,
// gradients of weights ("1W2") run beside what follows them.
bool RunsInOrder(const std::string& name) {
  return !test::TestDevice().is_cuda() || absl::StrContains(name, 'F') ||
         absl::StrContains(name, 'B');
}

std::string InOrder(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program) {
    if (std::string name = ToString(instruction); RunsInOrder(name))
      names.push_back(std::move(name));
  }
  return absl::StrJoin(names, " ");
}

// What the worker's stages computed in order while `work` ran, as a program;
// "?" where two were at it at once.
template <typename Work>
std::string ComputedBy(rpc::Agent& worker, const Work& work) {
  rpc::Tracer& tracer = *worker.tracer();
  tracer.Start(10'000, rpc::Tracer::Clock::now() + std::chrono::minutes(1));
  work();
  std::vector<rpc::TraceEvent> spans;
  for (rpc::TraceEvent& event : tracer.Take().events) {
    if (event.kind == rpc::TraceEvent::Kind::kSpan &&
        absl::StartsWith(event.peer, "stage ") &&  // not a kernel of a GPU
        !absl::StartsWith(event.name, "await "))
      spans.push_back(event);
  }
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.begin_ns < b.begin_ns;
  });
  std::vector<std::string> program;
  std::set<std::string> begun;
  int64_t end_ns = 0;
  for (const rpc::TraceEvent& span : spans) {
    // A BW has two parts, of which the second is a gradient of weights.
    const bool first = begun.insert(span.name).second;
    if (!RunsInOrder(span.name)) continue;
    if (!first && test::TestDevice().is_cuda()) continue;
    if (first)
      program.push_back(
          absl::StrCat(span.begin_ns < end_ns ? "?" : "", span.name));
    end_ns = span.end_ns;
  }
  return absl::StrJoin(program, " ");
}

TEST_F(PipelineTest, StagesOfAWorkerFollowItsOneOrder) {
  for (const std::string& schedule : ScheduleNames()) {
    MakeMlp(*PlaceStages(schedule, 4, 2));
    PipelineOptions options;
    options.split_size = 3;
    options.schedule.name = schedule;
    auto pipeline = MakePipeline(options);
    const std::string computed = ComputedBy(cluster_.at("bob"), [&] {
      Context ctx(agent());
      auto result = pipeline->Step(ctx, x_, labels_);
      ASSERT_TRUE(result.ok()) << result.status();
    });
    ASSERT_NE(pipeline->schedule(), nullptr);
    EXPECT_EQ(computed, InOrder(pipeline->schedule()->workers[0])) << schedule;
  }
}

TEST_F(PipelineTest, AutoIsOrderedByWhatStepsTake) {
  MakeMlp(*PlaceStages("auto", 4, 2));
  PipelineOptions options;
  options.split_size = 2;
  options.schedule.name = "auto";
  auto pipeline = MakePipeline(options);
  EXPECT_EQ(pipeline->schedule(), nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(pipeline->Timing().status()));
  std::vector<double> bubbles;
  for (int step = 0; step < 4; ++step) {
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->bubble.has_value());
    EXPECT_GT(*result->bubble, 0);
    EXPECT_LT(*result->bubble, 1);
    bubbles.push_back(*result->bubble);
    ASSERT_THAT(CheckSchedule(*pipeline->schedule()), testing::IsOk());
  }
  const auto timing = pipeline->Timing();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->schedule, *pipeline->schedule());
  // Two steps by the costs of the second one.
  EXPECT_DOUBLE_EQ(timing->bubble, (bubbles[2] + bubbles[3]) / 2);
  EXPECT_GT(timing->predicted.makespan, 0);
  EXPECT_GE(timing->predicted.bubble(), 0);
  EXPECT_LT(timing->predicted.bubble(), 1);
  // Another size is another order.
  pipeline->set_split_size(12);
  EXPECT_FALSE(pipeline->Timing().ok());
}

TEST(PipelineTimes, AGpuTimesTheFirstStepsAndSomeOfTheLaterOnes) {
  std::vector<int> timed;
  for (int step = 0; step < 66; ++step) {
    EXPECT_TRUE(Pipeline::IsTimed(false, step));
    if (Pipeline::IsTimed(true, step)) timed.push_back(step);
  }
  EXPECT_THAT(timed, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 64));
}

// Workers that declare a GPU; their modules are on the CPU.
TEST_F(PipelineTest, WhatCountsIsWhereTheModulesAre) {
  const rpc::Compute gpu = {.device = Device::Cuda(0)};
  testing::TrainingCluster cluster(
      3, AddPipelineTypes, testing::TransportKind::kInProcess,
      {{"alice", {}}, {"bob", gpu}, {"carol", gpu}});
  rpc::Agent& trainer = cluster.alice();
  const Placement placement = {.device = Device::Cpu()};
  std::vector<Module<DenseStage>> stages;
  for (const bool first : {true, false}) {
    stages.push_back(
        *Module<DenseStage>::Create(trainer, first ? "bob" : "carol", placement,
                                    int64_t{4}, int64_t{4}, first, uint64_t{1})
             .Await());
  }
  PipelineOptions options;
  options.split_size = 2;
  options.schedule.name = "auto";
  auto pipeline = Pipeline::Make(trainer, options, {stages[0], stages[1]});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ((*pipeline)->warm_up_steps(), 2);  // nothing is recorded
  const Tensor x = Tensor::Ones({4, 4});
  const Tensor labels = Tensor::From<int64_t>({0, 1, 2, 3});
  for (int step = 0; step < 10; ++step) {
    Context ctx(trainer);
    const auto result = (*pipeline)->Step(ctx, x, labels);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->bubble.has_value()) << step;
  }
  EXPECT_EQ((*pipeline)->WhyNotRecorded(), "");
  EXPECT_TRUE((*pipeline)->Timing().ok());
}

// By windows from the second step on, by mail in the first.
TEST_F(PipelineTest, TracesShowHowLongAStageWaitsForAnother) {
  MakeMlp(2);
  PipelineOptions options;
  options.split_size = 6;
  options.windows = WindowsHere();
  auto pipeline = MakePipeline(options);
  for (int step = 0; step < 2; ++step) {
    for (const auto& [worker, wait] :
         {std::pair{"carol", "await 1F0"}, std::pair{"bob", "await 0BW0"}}) {
      rpc::Tracer& tracer = *cluster_.at(worker).tracer();
      tracer.Start(10'000, rpc::Tracer::Clock::now() + std::chrono::minutes(1));
      Context ctx(agent());
      ASSERT_THAT(pipeline->Step(ctx, x_, labels_), testing::IsOk());
      int64_t awaited_ns = 0, began_ns = 0;
      for (const rpc::TraceEvent& event : tracer.Take().events) {
        if (event.name == wait) {
          EXPECT_GE(event.end_ns, event.begin_ns);
          awaited_ns = event.end_ns;
        }
        if (began_ns == 0 && absl::StrCat("await ", event.name) == wait)
          began_ns = event.begin_ns;
      }
      EXPECT_GT(awaited_ns, 0) << worker << " in step " << step;
      EXPECT_GE(began_ns, awaited_ns) << worker << " in step " << step;
    }
  }
}

TEST_F(PipelineTest, FollowsAScheduleThatIsGiven) {
  MakeMlp(2);
  PipelineOptions options;
  options.split_size = 6;
  const auto mine = ParseSchedule(
      "schedule mine\n"
      "worker 0: 0F0 0F1 0B0 0W0 0BW1\n"
      "worker 1: 1F0 1F1 1BW0 1B1 1W1\n");
  ASSERT_TRUE(mine.ok()) << mine.status();
  options.schedule.given = *mine;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 6));
  ExpectGradientsEqual(ctx);
  EXPECT_EQ(pipeline->schedule()->name, "mine");
  pipeline->set_split_size(4);
  Context next(agent());
  const absl::Status refused = pipeline->Step(next, x_, labels_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("2 micro-batches, not for 2, 2 and 3"));
}

}  // namespace
}  // namespace baton::dist

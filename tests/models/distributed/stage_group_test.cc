// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::FragileStage;
using ::testing::HasSubstr;
using testing::IsOk;
using Fault = FragileStage::Fault;

void AddGroupTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<FragileStage>(registry);
}

// No trainer tells the workers; dave waits for an input that never comes.
TEST(StageGroup, WorkersTellEachOtherThatAStepBroke) {
  testing::TrainingCluster cluster(4, AddGroupTypes);
  rpc::Agent& agent = cluster.alice();
  FragileStage::ResetGate();
  Generator generator(11);
  const Tensor x = test::Put(RandNormal({12, 6}, generator));
  for (const char* culprit : {"bob", "carol"}) {
    SCOPED_TRACE(culprit);
    const std::vector<std::string> workers = {"bob", "carol", "dave"};
    std::vector<RRef<Stage>> stages(3);
    std::vector<RRef<StageGroup>> groups;
    std::map<int32_t, RRef<Stage>> behind;
    for (int i = 2; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      const Fault fault =
          workers[at] == culprit ? Fault::kForward : Fault::kNone;
      const StageModule module =
          *Module<FragileStage>::Create(agent, workers[at], fault, 0).Await();
      stages[at] = module.MakeStage(agent, {.index = i, .count = 3}, behind);
      ASSERT_THAT(stages[at].Ready().Await(), IsOk());
      behind[i] = stages[at];
    }
    for (size_t at : {2, 1, 0}) {
      auto others = at == 0 ? groups : std::vector<RRef<StageGroup>>();
      groups.push_back(*rpc::Create<StageGroup>(
                            agent, workers[at],
                            std::vector<RRef<Stage>>{stages[at]}, 0, others)
                            .Await());
    }
    StepOrder order;
    order.step = order.plan = 1;
    order.inputs = {x};
    order.time_left = std::chrono::minutes(1);
    order.by_messages = true;
    std::vector<Future<GroupReport>> runs;
    for (int stage : {2, 1, 0}) {
      order.new_plan = StepPlan{.id = 1,
                                .program = {{StageOp::kForward, stage, 0}},
                                .rows = 12,
                                .micro_batches = {12}};
      runs.push_back(
          groups[static_cast<size_t>(2 - stage)].Async<&StageGroup::Run>(
              order));
    }
    const absl::Status of_dave =
        runs[0].Await(std::chrono::seconds(20)).status();
    EXPECT_THAT(std::string(of_dave.message()), HasSubstr(culprit));
    EXPECT_THAT(std::string(of_dave.message()), HasSubstr("forward broke"));
    for (const auto& run : runs)
      EXPECT_NE(run.Await().status().code(),
                absl::StatusCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace baton::dist

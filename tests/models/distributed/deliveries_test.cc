// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/future.h"
#include "core/tensor.h"
#include "models/distributed/pipeline.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/within.h"

// What stages hand each other, and what becomes of a step when that is refused.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::FragileStage;
using ::testing::HasSubstr;
using testing::IsOk;
using Programs = std::map<std::string, Program>;  // by worker

void AddDeliveriesTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<DenseStage>(registry);
  RegisterModule<FragileStage>(registry);
}

// Stages and groups without a trainer, which would tell workers of an error.
class Deliveries : public ::testing::Test {
 protected:
  Deliveries()
      : cluster_(4, AddDeliveriesTypes), x_(test::Put(Tensor::Ones({12, 6}))) {}
  rpc::Agent& agent() { return cluster_.alice(); }

  // What the first stage gives the second one goes to `misled` instead.
  void Make(const std::vector<std::string>& workers, size_t misled = 1) {
    const auto count = static_cast<int32_t>(workers.size());
    stages_.resize(workers.size());
    for (size_t i = workers.size(); i-- > 0;) {
      std::map<int32_t, RRef<Stage>> behind;
      const auto next = static_cast<int32_t>(i) + 1;
      if (next < count) behind[next] = stages_[i == 0 ? misled : i + 1];
      const StageModule module =
          *Module<FragileStage>::Create(agent(), workers[i],
                                        FragileStage::Fault::kNone, 0)
               .Await();
      stages_[i] = module.MakeStage(
          agent(), {.index = static_cast<int32_t>(i), .count = count}, behind);
      ASSERT_THAT(stages_[i].Ready().Await(), IsOk());
    }
    std::map<std::string, std::vector<RRef<Stage>>> of_worker;
    for (size_t i = 0; i < workers.size(); ++i)
      of_worker[workers[i]].push_back(stages_[i]);
    std::vector<RRef<StageGroup>> others;
    for (const auto& [worker, stages] : of_worker) {
      if (worker == workers[0]) continue;
      groups_[worker] = *MakeGroup(worker, stages, {}).Await();
      others.push_back(groups_[worker]);
    }
    groups_[workers[0]] =
        *MakeGroup(workers[0], of_worker[workers[0]], others).Await();
  }
  Future<RRef<StageGroup>> MakeGroup(
      const std::string& worker, const std::vector<RRef<Stage>>& stages,
      const std::vector<RRef<StageGroup>>& others) {
    return rpc::Create<StageGroup>(agent(), worker, stages, 0, others);
  }
  // An evaluation of one micro-batch: what each worker says.
  std::map<std::string, absl::Status> Evaluate(uint64_t step,
                                               const Programs& programs) {
    std::map<std::string, Future<GroupReport>> runs;
    for (const auto& [worker, program] : programs) {
      StepOrder order;
      order.step = order.plan = step;
      order.inputs = {x_};
      order.time_left = std::chrono::minutes(1);
      order.by_messages = true;
      order.new_plan = StepPlan{
          .id = step, .program = program, .rows = 12, .micro_batches = {12}};
      runs[worker] = groups_.at(worker).Async<&StageGroup::Run>(order);
    }
    std::map<std::string, absl::Status> said;
    for (const auto& [worker, run] : runs)
      said[worker] = run.Await(std::chrono::seconds(20)).status();
    return said;
  }

  testing::TrainingCluster cluster_;
  std::vector<RRef<Stage>> stages_;
  std::map<std::string, RRef<StageGroup>> groups_;
  const Tensor x_;
};

TEST_F(Deliveries, OneThatIsRefusedBreaksTheStepAtAllWorkersAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Make({"bob", "carol", "dave"}, 2));
  // Bob is done when he has sent; carol waits for what went to dave.
  const auto said = Evaluate(1, {{"bob", {{StageOp::kForward, 0, 0}}},
                                 {"carol", {{StageOp::kForward, 1, 0}}},
                                 {"dave", {{StageOp::kForward, 2, 0}}}});
  for (const auto& [worker, status] : said) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("stage 0 of 3: micro-batch 0 at stage 1: "))
        << worker;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("it takes nothing from stage 0"))
        << worker;
  }
}

TEST_F(Deliveries, OneThatIsRefusedEndsTheWaitsOfOtherStagesOfItsSender) {
  ASSERT_NO_FATAL_FAILURE(Make({"bob", "carol", "bob", "carol"}, 3));
  // Bob waits at stage 2 for what comes of stage 0 alone.
  const auto said = Evaluate(
      1, {{"bob", {{StageOp::kForward, 0, 0}, {StageOp::kForward, 2, 0}}},
          {"carol", {{StageOp::kForward, 1, 0}, {StageOp::kForward, 3, 0}}}});
  for (const auto& [worker, status] : said) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("it takes nothing from stage 0"))
        << worker;
  }
}

TEST_F(Deliveries, AStepWorksAfterOneInWhichADeliveryWasRefused) {
  ASSERT_NO_FATAL_FAILURE(Make({"bob", "carol", "dave"}));
  const Programs programs = {{"bob", {{StageOp::kForward, 0, 0}}},
                             {"carol", {{StageOp::kForward, 1, 0}}},
                             {"dave", {{StageOp::kForward, 2, 0}}}};
  // One of these comes before bob's, which then is one too many, as the other,
  // or too late.
  Promise<void> refused;
  std::vector<Future<Values>> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(
        stages_[1].Async<&Stage::PutInputs>(uint64_t{1}, 0, 0, Outputs{{x_}}));
    others.back().OnReady(
        [refused](const auto&) { refused.Set(absl::OkStatus()); });
  }
  ASSERT_THAT(refused.future().Await(), IsOk());
  const auto said = Evaluate(1, programs);
  EXPECT_THAT(std::string(said.at("bob").message()),
              HasSubstr("stage 0 of 3: micro-batch 0 at stage 1: "));
  for (const auto& [worker, status] : Evaluate(2, programs))
    EXPECT_THAT(status, IsOk()) << worker;
  for (const auto& other : others) other.Await().status().IgnoreError();
}

// The trainer's order may not reach every worker, which is then given up.
TEST_F(Deliveries, ForAStepThatNeverBeginsEndWithTheirCallers) {
  ASSERT_NO_FATAL_FAILURE(Make({"bob", "carol"}));
  const rpc::CallOptions brief{.timeout = std::chrono::milliseconds(50)};
  const auto put = stages_[1].Async<&Stage::PutInputs>(brief, uint64_t{1}, 0, 0,
                                                       Outputs{{x_}});
  const auto ran = groups_["carol"].Async<&StageGroup::Ran>(brief, uint64_t{2});
  const auto late = absl::StatusCode::kDeadlineExceeded;
  EXPECT_THAT(put.Await(), testing::Fails(late, "carol"));
  EXPECT_THAT(ran.Await(), testing::Fails(late, "carol"));
  EXPECT_TRUE(testing::Within(std::chrono::seconds(5), [&] {
    return cluster_.at("carol").GetDebugInfo().incoming.empty();
  }));
}

// Calls of PutInputs that the worker has made.
uint64_t PutsOf(const rpc::Agent& worker) {
  uint64_t calls = 0;
  for (const auto& method : worker.GetDebugInfo().methods) {
    if (!method.incoming && method.method == "Stage::PutInputs")
      calls += method.calls;
  }
  return calls;
}

TEST_F(Deliveries, WithinAWorkerAreNoCalls) {
  std::vector<StageModule> chain;
  for (const char* worker : {"bob", "bob", "carol", "carol"}) {
    chain.emplace_back(*Module<DenseStage>::Create(agent(), worker, int64_t{6},
                                                   int64_t{6}, true,
                                                   uint64_t{1})
                            .Await());
  }
  auto pipeline = Pipeline::Make(agent(), {.split_size = 4}, chain);
  ASSERT_THAT(pipeline, IsOk());
  const Tensor labels =
      test::Put(Tensor::Full({12}, 1, {.dtype = DType::kI64}));
  const Context ctx(agent());
  ASSERT_THAT((*pipeline)->Step(ctx, x_, labels), IsOk());
  EXPECT_EQ(PutsOf(cluster_.at("bob")), 3U);
  EXPECT_EQ(PutsOf(cluster_.at("carol")), 0U);
}

}  // namespace
}  // namespace baton::dist

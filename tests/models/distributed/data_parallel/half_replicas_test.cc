// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/support/process_cluster.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"

// Two pipelines that are copies, whose four workers are processes that compute
// in f16 on TestDevice.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::IsOk;

constexpr int64_t kHalfRows = 12;  // of the whole batch
constexpr double kHalfRate = 0.1;

std::vector<std::string> HalfWorker(const std::string& name,
                                    const std::string& rendezvous,
                                    int world_size) {
  return {testing::ProgramPath("stage_worker"), name, rendezvous,
          absl::StrCat(NextDevice().ToString(), " f16"),
          std::to_string(world_size)};
}

class HalfReplicas : public ::testing::Test {
 protected:
  struct Replica {
    std::vector<Module<DenseStage>> stages;
    std::unique_ptr<Pipeline> pipeline;
    std::unique_ptr<Optimizer<optim::Sgd>> optimizer;
  };
  using States = std::vector<nn::StateMap>;  // of all stages of all replicas

  void SetUp() override {
    if (test::TestDevice().is_cuda() && cuda::DeviceCount() < 2)
      GTEST_SKIP() << "each replica needs a GPU";
    // The copies of a stage are at different GPUs.
    for (const char* name : {"a0", "b0", "a1", "b1"}) processes_.Start(name, 5);
    auto agent = JoinProcesses("trainer", processes_.address(), 5);
    ASSERT_THAT(agent, IsOk());
    agent_ = *std::move(agent);
    for (const char* name : {"a", "b"}) MakeReplica(name);
    IgnoreFirstInput(replicas_[0].stages[0]);
    ASSERT_THAT(Pipeline::MakeReplicas(*agent_, {replicas_[0].pipeline.get(),
                                                 replicas_[1].pipeline.get()}),
                IsOk());
  }
  void TearDown() override {
    replicas_.clear();
    if (agent_) agent_->Shutdown({.mode = kNow}).IgnoreError();
  }

  // Steps both; whether they left the step out, and the mean loss.
  std::pair<bool, double> Step(const Tensor& inputs) {
    std::vector<Future<Pipeline::StepResult>> steps;
    for (int64_t row = 0; const Replica& replica : replicas_) {
      const int64_t end = row + kHalfRows / 2;
      steps.push_back(replica.pipeline->StepAsync(*replica.optimizer,
                                                  inputs.Slice(0, row, end),
                                                  labels_.Slice(0, row, end)));
      row = end;
    }
    const auto results = WaitAll(steps).Await();
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return {};
    EXPECT_EQ(results->front().skipped, results->back().skipped);
    return {results->front().skipped,
            (results->front().loss + results->back().loss) / 2};
  }
  void ExpectScale(double scale) {
    for (const Replica& replica : replicas_)
      EXPECT_EQ(replica.pipeline->loss_scale(), scale);
  }
  States StatesOfAll() {
    States states;
    for (const Replica& replica : replicas_) {
      for (const auto& stage : replica.stages) {
        const auto state = stage.StateDict().Await();
        EXPECT_THAT(state, IsOk());
        states.emplace_back();
        for (const auto& [name, value] : *state)
          states.back()[name] = value.To(Device::Cpu());
      }
    }
    return states;
  }
  static void ExpectSameBits(const nn::StateMap& a, const nn::StateMap& b) {
    for (const auto& [name, value] : a)
      EXPECT_TRUE(ops::BitEqual(value, b.at(name))) << name;
  }

  static constexpr auto kNow = rpc::ShutdownOptions::Mode::kNow;
  static Tensor Inputs() {
    Generator generator(11);
    return RandNormal({kHalfRows, 6}, generator);
  }
  const Tensor labels_ = [] {
    Generator generator(12);
    return RandInt(0, 4, {kHalfRows}, generator);
  }();
  testing::ProcessCluster processes_{HalfWorker};
  std::unique_ptr<rpc::Agent> agent_;
  std::vector<Replica> replicas_;

 private:
  // Of two layers, 6 -> 8 -> 4, which draw their own weights.
  void MakeReplica(const std::string& name) {
    Replica& made = replicas_.emplace_back();
    for (const int i : {0, 1}) {
      const auto stage =
          Module<DenseStage>::Create(*agent_, absl::StrCat(name, i),
                                     i == 0 ? 6 : 8, i == 0 ? 8 : 4, i == 0,
                                     uint64_t{10} * replicas_.size() + i)
              .Await();
      ASSERT_THAT(stage, IsOk());
      made.stages.push_back(*stage);
    }
    auto pipeline = Pipeline::Make(
        *agent_,
        {.split_size = 2, .loss_scale = {{.scale = 1024, .interval = 2}}},
        {made.stages[0], made.stages[1]});
    ASSERT_THAT(pipeline, IsOk());
    made.pipeline = *std::move(pipeline);
    made.optimizer = std::make_unique<Optimizer<optim::Sgd>>(
        *agent_, optim::SgdOptions{.lr = kHalfRate},
        std::vector<ParameterSource>{made.stages[0].ref(),
                                     made.stages[1].ref()});
  }
  // Nothing of it gets into the model, so that a huge one is felt by the
  // gradients of the first stage's weights alone.
  static void IgnoreFirstInput(Module<DenseStage>& stage) {
    const auto state = stage.StateDict().Await();
    ASSERT_THAT(state, IsOk());
    for (const auto& [name, value] : *state)
      if (value.rank() == 2) value.Slice(1, 0, 1).Fill(0);
    ASSERT_THAT(stage.LoadStateDict(*state).Await(), IsOk());
  }
};

TEST_F(HalfReplicas, LeaveOutAtAllAStepThatOverflowsAtOneStageOfOne) {
  const States before = StatesOfAll();
  const Tensor huge = Inputs();
  huge.Slice(0, kHalfRows / 2, kHalfRows).Slice(1, 0, 1).Fill(6e4);
  EXPECT_TRUE(Step(huge).first);
  ExpectScale(512);
  const States after = StatesOfAll();
  for (size_t i = 0; i < before.size(); ++i)
    ExpectSameBits(after[i], before[i]);

  // One process in f32 on the whole batch.
  const Modules whole = {std::make_unique<DenseStage>(6, 8, true, 1),
                         std::make_unique<DenseStage>(8, 4, false, 2)};
  std::vector<Variable> parameters;
  for (size_t i = 0; i < whole.size(); ++i) {
    nn::StateMap state;
    for (const auto& [name, value] : before[i])
      state[name] = value.To(DType::kF32);
    ASSERT_THAT(whole[i]->LoadStateDict(state), IsOk());
    for (const Variable& each : whole[i]->Parameters())
      parameters.push_back(each);
  }
  optim::Sgd sgd(parameters, {.lr = kHalfRate});
  for (const double scale : {512, 1024, 1024, 2048}) {
    sgd.ZeroGrad();
    const double loss = AccumulateLocally(whole, Inputs(), labels_, 2);
    sgd.Step();
    const auto [skipped, half_loss] = Step(Inputs());
    EXPECT_FALSE(skipped);
    EXPECT_NEAR(half_loss, loss, 5e-3);
    ExpectScale(scale);
  }
  const States trained = StatesOfAll();
  for (size_t i = 0; i < whole.size(); ++i) {
    ExpectSameBits(trained[i], trained[i + 2]);
    for (const auto& [name, value] : whole[i]->StateDict()) {
      EXPECT_EQ(trained[i].at(name).dtype(), DType::kF16);
      EXPECT_TRUE(
          ops::AllClose(trained[i].at(name).To(DType::kF32), value, 1e-2, 2e-3))
          << name;
    }
  }
}

}  // namespace
}  // namespace baton::dist

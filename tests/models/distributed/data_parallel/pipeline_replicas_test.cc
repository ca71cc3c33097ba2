// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "models/distributed/local_links.h"
#include "models/distributed/program_run.h"
#include "models/distributed/stage_replicas.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/rpc/collectives/groups.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/within.h"

// Pipelines of copies of one model, each of which trains on a part of a batch;
// of GPUs with BATON_TEST_DEVICE=cuda.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::FragileStage;
using testing::GradientsAt;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

constexpr int64_t kBatchRows = 12;  // of the whole batch

Tensor ReplicaInputs() {
  Generator generator(11);
  return RandNormal({kBatchRows, 6}, generator);
}
Tensor ReplicaLabels() {
  Generator generator(12);
  return RandInt(0, 4, {kBatchRows}, generator);
}
Tensor ShareOfReplica(const Tensor& all, size_t replica, size_t replicas) {
  const auto rows = kBatchRows / static_cast<int64_t>(replicas);
  const auto begin = static_cast<int64_t>(replica) * rows;
  return all.Slice(0, begin, begin + rows);
}

// Of two layers, 6 -> 8 -> 4.
std::shared_ptr<DenseStage> LocalStage(int stage, uint64_t seed) {
  return stage == 0 ? std::make_unique<DenseStage>(6, 8, true, seed)
                    : std::make_unique<DenseStage>(8, 4, false, seed + 1);
}

// GPUs are one for each worker or, where they are fewer, for each replica.
Device DeviceOfCopy(int replica, int stage) {
  if (test::TestDevice().is_cpu()) return Device::Cpu();
  return Device::Cuda(cuda::DeviceCount() < 4 ? replica : 2 * replica + stage);
}

Modules WholeModel() {
  Modules stages = {LocalStage(0, 5), LocalStage(1, 5)};
  for (const auto& stage : stages) stage->To(DeviceOfCopy(0, 0));
  return stages;
}
// As replicas do on their parts of the batch.
double AccumulateWhole(const Modules& whole, int64_t split_size) {
  return AccumulateLocally(whole, ReplicaInputs().To(DeviceOfCopy(0, 0)),
                           ReplicaLabels().To(DeviceOfCopy(0, 0)), split_size);
}
Tensor OnCpu(const Tensor& x) { return x.To(Device::Cpu()); }

class PipelineReplicas : public ::testing::Test {
 protected:
  struct Replica {
    std::vector<Module<DenseStage>> stages;
    std::unique_ptr<Pipeline> pipeline;
    std::unique_ptr<Optimizer<optim::Sgd>> optimizer;
  };

  PipelineReplicas() {
    SetDeterministic(true);
    testing::ClusterOptions options;
    options.names = {"alice", "a0", "a1", "a2", "b0", "b1", "b2"};
    options.fill = [](rpc::Registry& registry) {
      Register(registry);
      AddPipelineTypes(registry);
      rpc::RegisterCollectives(registry);
    };
    options.on_start = [](rpc::Agent& agent) {
      Attach(agent);
      rpc::AttachCollectives(agent);
    };
    for (int replica = 0; replica < 2; ++replica) {
      for (int i = 0; i < 3; ++i) {
        options.compute[absl::StrCat(replica == 0 ? "a" : "b", i)].device =
            DeviceOfCopy(replica, i % 2);
      }
    }
    cluster_ = std::make_unique<testing::LocalCluster>(options);
  }
  void SetUp() override {
    if (test::TestDevice().is_cuda() && cuda::DeviceCount() < 2)
      GTEST_SKIP() << "each replica needs a GPU";
  }
  ~PipelineReplicas() override { SetDeterministic(false); }

  rpc::Agent& alice() { return (*cluster_)["alice"]; }
  // With stage i at "a<i>" or "b<i>", and a fragile one between them at "a2" or
  // "b2". Each draws its own weights: the first
  // one's, from seed 5, count.
  void MakeReplicas(const PipelineOptions& options, bool fragile = false) {
    for (const std::string name : {"a", "b"}) {
      Replica& made = replicas_.emplace_back();
      const uint64_t seed = 5 + 10 * replicas_.size() - 10;
      std::vector<StageModule> stages;
      for (int i = 0; i < 2; ++i) {
        const auto stage = Module<DenseStage>::Create(
                               alice(), absl::StrCat(name, i), i == 0 ? 6 : 8,
                               i == 0 ? 8 : 4, i == 0, seed + i)
                               .Await();
        ASSERT_THAT(stage, IsOk());
        made.stages.push_back(*stage);
        stages.emplace_back(*stage);
        if (i > 0 || !fragile) continue;
        const auto fault = name == "b" ? FragileStage::Fault::kBackward
                                       : FragileStage::Fault::kNone;
        const auto middle = Module<FragileStage>::Create(
                                alice(), absl::StrCat(name, 2), fault, 1)
                                .Await();
        ASSERT_THAT(middle, IsOk());
        stages.emplace_back(*middle);
      }
      auto pipeline = Pipeline::Make(alice(), options, stages);
      ASSERT_THAT(pipeline, IsOk());
      made.pipeline = *std::move(pipeline);
      made.optimizer = std::make_unique<Optimizer<optim::Sgd>>(
          alice(), optim::SgdOptions{.lr = 0.1, .momentum = 0.9},
          std::vector<ParameterSource>{made.stages[0].ref(),
                                       made.stages[1].ref()});
    }
    ASSERT_THAT(Pipeline::MakeReplicas(alice(), {replicas_[0].pipeline.get(),
                                                 replicas_[1].pipeline.get()}),
                IsOk());
  }
  // A step of both, which their optimizers take.
  std::vector<absl::StatusOr<Pipeline::StepResult>> StepBoth(
      const Tensor& inputs = ReplicaInputs()) {
    std::vector<Future<Pipeline::StepResult>> steps;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      steps.push_back(replicas_[i].pipeline->StepAsync(
          *replicas_[i].optimizer, ShareOfReplica(inputs, i, 2),
          ShareOfReplica(ReplicaLabels(), i, 2)));
    }
    std::vector<absl::StatusOr<Pipeline::StepResult>> results;
    for (const auto& step : steps) results.push_back(step.Await());
    return results;
  }
  nn::StateMap StateOf(size_t replica, int stage) {
    const auto state = replicas_[replica]
                           .stages[static_cast<size_t>(stage)]
                           .StateDict()
                           .Await();
    EXPECT_THAT(state, IsOk());
    nn::StateMap here;
    for (const auto& [name, value] : *state) here[name] = OnCpu(value);
    return here;
  }
  void ExpectIdle() {
    replicas_.clear();
    cluster_->ExpectIdle();
  }

  std::unique_ptr<testing::LocalCluster> cluster_;
  std::vector<Replica> replicas_;
};

// Halves are exact, and two sums have one order.
TEST_F(PipelineReplicas, GiveTheBitsOfOneProcessOnTheWholeBatch) {
  MakeReplicas({});
  const Modules whole = WholeModel();
  const double loss = AccumulateWhole(whole, kBatchRows / 2);
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<Future<Pipeline::StepResult>> steps;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    contexts.push_back(std::make_unique<Context>(alice()));
    steps.push_back(replicas_[i].pipeline->StepAsync(
        *contexts.back(), ShareOfReplica(ReplicaInputs(), i, 2),
        ShareOfReplica(ReplicaLabels(), i, 2)));
  }
  const auto results = WaitAll(steps).Await();
  ASSERT_THAT(results, IsOk());
  EXPECT_FLOAT_EQ((*results)[0].loss + (*results)[1].loss, 2 * loss);
  for (size_t i = 0; i < replicas_.size(); ++i) {
    for (size_t stage = 0; stage < 2; ++stage) {
      const Module<DenseStage>& module = replicas_[i].stages[stage];
      const auto gradients = alice()
                                 .Async<&GradientsAt<DenseStage>>(
                                     module.owner(), *contexts[i], module.ref())
                                 .Await();
      ASSERT_THAT(gradients, IsOk());
      const auto parameters = whole[stage]->Parameters();
      ASSERT_EQ(gradients->size(), parameters.size());
      for (size_t p = 0; p < parameters.size(); ++p) {
        EXPECT_TRUE(
            ops::BitEqual(OnCpu((*gradients)[p]), OnCpu(parameters[p].grad())))
            << "replica " << i << ", stage " << stage << ", parameter " << p;
      }
    }
  }
  contexts.clear();
  ExpectIdle();
}

class ReplicasBySchedule : public PipelineReplicas,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(ReplicasBySchedule, StepAsOneProcessAndStayEqualBitForBit) {
  constexpr int kSteps = 5;
  MakeReplicas({.split_size = 2, .schedule = {.name = GetParam()}});
  const Modules whole = WholeModel();
  std::vector<Variable> parameters = whole[0]->Parameters();
  for (const Variable& each : whole[1]->Parameters())
    parameters.push_back(each);
  optim::Sgd sgd(parameters, {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < kSteps; ++step) {
    sgd.ZeroGrad();
    const double loss = AccumulateWhole(whole, 2);
    sgd.Step();
    const auto results = StepBoth();
    ASSERT_THAT(results[0], IsOk());
    ASSERT_THAT(results[1], IsOk());
    EXPECT_NEAR((results[0]->loss + results[1]->loss) / 2, loss, 1e-5);
  }
  for (int stage = 0; stage < 2; ++stage) {
    const nn::StateMap expected =
        whole[static_cast<size_t>(stage)]->StateDict();
    const nn::StateMap first = StateOf(0, stage), second = StateOf(1, stage);
    for (const auto& [name, value] : expected) {
      EXPECT_TRUE(ops::BitEqual(first.at(name), second.at(name))) << name;
      EXPECT_TRUE(ops::AllClose(first.at(name), OnCpu(value), 1e-4, 1e-5))
          << name;
    }
  }
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Orders, ReplicasBySchedule,
                         ::testing::Values("gpipe", "1f1b", "zb-h1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(PipelineReplicas, BreakTogetherAndStepNothing) {
  MakeReplicas({.split_size = 2}, /*fragile=*/true);
  const nn::StateMap before = StateOf(0, 0);
  for (const auto& result : StepBoth()) {
    EXPECT_THAT(result.status().message(),
                ::testing::HasSubstr("backward broke"));
  }
  const nn::StateMap first = StateOf(0, 0), second = StateOf(1, 0);
  for (const auto& [name, value] : before) {
    EXPECT_TRUE(ops::BitEqual(first.at(name), value)) << name;
    EXPECT_TRUE(ops::BitEqual(second.at(name), value)) << name;
  }
  // For good.
  for (const auto& result : StepBoth()) EXPECT_FALSE(result.ok());
  ExpectIdle();
}

TEST_F(PipelineReplicas, SkipTogetherAStepThatOverflowsAtOne) {
  MakeReplicas({.loss_scale = {{.scale = 1e12}}});
  const nn::StateMap before = StateOf(0, 0);
  const Tensor inputs = ReplicaInputs();
  inputs.Slice(0, kBatchRows - 1, kBatchRows).Fill(1e30);  // the second one's
  for (const auto& result : StepBoth(inputs)) {
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->skipped);
  }
  const nn::StateMap first = StateOf(0, 0), second = StateOf(1, 0);
  for (const auto& [name, value] : before) {
    EXPECT_TRUE(ops::BitEqual(first.at(name), value)) << name;
    EXPECT_TRUE(ops::BitEqual(second.at(name), value)) << name;
  }
  for (const Replica& replica : replicas_)
    EXPECT_EQ(replica.pipeline->loss_scale(), 0.5e12);
  for (const auto& result : StepBoth()) {
    ASSERT_THAT(result, IsOk());
    EXPECT_FALSE(result->skipped);
  }
  ExpectIdle();
}

TEST_F(PipelineReplicas, NameAWorkerThatIsLost) {
  MakeReplicas({.split_size = 2});
  for (const auto& result : StepBoth()) ASSERT_THAT(result, IsOk());
  cluster_->Kill("b1");
  for (const auto& result : StepBoth()) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(result.status().message(), ::testing::HasSubstr("b1"));
  }
  replicas_.clear();
}

TEST_F(PipelineReplicas, AreMadeOfPipelinesThatAreAlikeAndNew) {
  MakeReplicas({});
  const auto join = [&] {
    return Pipeline::MakeReplicas(
        alice(), {replicas_[0].pipeline.get(), replicas_[1].pipeline.get()});
  };
  for (const auto& result : StepBoth()) ASSERT_THAT(result, IsOk());
  EXPECT_THAT(join(), testing::Fails(absl::StatusCode::kFailedPrecondition,
                                     "before its first step"));
  replicas_[1].pipeline.reset();
  auto other = Pipeline::Make(alice(), {}, {replicas_[1].stages[0]});
  ASSERT_THAT(other, IsOk());
  replicas_[1].pipeline = *std::move(other);
  EXPECT_THAT(join(), testing::Fails(absl::StatusCode::kInvalidArgument,
                                     "the same stages"));
  ExpectIdle();
}

// The last stage's gradients are there first: they are reduced before the first
// stage's backward ends, which waits for that here.
TEST(StageReplicas, ReduceWhileStagesBeforeStillCompute) {
  constexpr size_t kReplicas = 2;
  // Of each stage.
  std::vector<std::unique_ptr<Groups>> groups;
  for (int stage = 0; stage < 2; ++stage)
    groups.push_back(std::make_unique<Groups>(kReplicas));
  OnEach(kReplicas, [&](size_t replica) {
    const Modules modules = {LocalStage(0, 5), LocalStage(1, 5)};
    std::map<int, LocalLinks> links;
    std::vector<std::shared_ptr<StageReplicas>> replicas;
    std::vector<ProgramRun::RunStage> stages;
    const StageStreams streams = StageStreams::Current(Device::Cpu());
    for (int i = 0; i < 2; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto made =
          StageReplicas::Make(*modules[at], (*groups[at])[replica]).Await();
      ASSERT_THAT(made, IsOk());
      replicas.push_back(*made);
      const auto link =
          links.try_emplace(i, i, streams, links, LocalLinks::Options());
      stages.push_back({.module = *modules[at],
                        .spec = {.index = i, .count = 2},
                        .streams = streams,
                        .links = link.first->second,
                        .replicas = replicas[at].get()});
    }
    rpc::ProcessGroup& of_last = *(*groups[1])[replica];
    const size_t before = of_last.records().size();
    bool reduced = false;
    Variable(modules[0]->Parameters()[0]).AddHook([&](const Tensor&) {
      reduced = testing::Within(std::chrono::seconds(20), [&] {
        const auto records = of_last.records();
        return records.size() > before &&
               records.back().state == rpc::FlightRecord::State::kDone;
      });
      return Tensor();
    });
    StepPlan plan;
    plan.rows = kBatchRows / 2;
    plan.micro_batches = {kBatchRows / 2};
    plan.training = true;
    plan.loss = Loss::kCrossEntropy;
    plan.program = {{StageOp::kForward, 0, 0},
                    {StageOp::kForward, 1, 0},
                    {StageOp::kBackward, 1, 0},
                    {StageOp::kBackward, 0, 0}};
    ProgramRun run(plan,
                   {.inputs = {ShareOfReplica(ReplicaInputs(), replica, 2)},
                    .targets = ShareOfReplica(ReplicaLabels(), replica, 2)},
                   stages, nullptr);
    ASSERT_THAT(run.Run(), IsOk());
    EXPECT_TRUE(reduced);
    EXPECT_EQ(run.TakeGradients().size(), 4u);
  });
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// What a stage leaves of its module's state: modes, generators, statistics.
namespace baton::dist {
namespace {

using testing::IsOk;
using testing::NoisyStage;

std::string Modes(const nn::Module& module) {
  std::string modes = module.is_training() ? "T" : "E";
  for (const auto& child : module.children()) modes += Modes(*child.value);
  return modes;
}

// 'T' or 'E' of the module and of each below it.
absl::StatusOr<std::string> ModesOf(const RRef<NoisyStage>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  return Modes(*local);
}

absl::Status EvalNorm(const RRef<NoisyStage>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  local->children().at(1).value->Eval();
  return absl::OkStatus();
}

void AddStageTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<NoisyStage>(registry);
  registry.AddFunction<&ModesOf>().AddFunction<&EvalNorm>();
}

// Three stages that each hold a batch norm and a dropout.
class StageTest : public ::testing::Test {
 protected:
  StageTest() : cluster_(4, AddStageTypes) {
    MakeModules();
    Generator generator(11);
    x_ = test::Put(RandNormal({12, 6}, generator));
    labels_ = test::Put(RandInt(0, 6, {12}, generator));
  }
  rpc::Agent& agent() { return cluster_.alice(); }

  // Anew, equal to those before.
  void MakeModules() {
    modules_.clear();
    for (const char* worker : {"bob", "carol", "dave"}) {
      auto made =
          Module<NoisyStage>::Create(agent(), worker, 6, 0.5, 7).Await();
      ASSERT_THAT(made, IsOk());
      modules_.push_back(*made);
    }
  }
  std::unique_ptr<Pipeline> MakePipeline(bool recompute,
                                         const std::string& schedule) {
    PipelineOptions options;
    options.split_size = 5;
    options.schedule.name = schedule;
    options.recompute = recompute;
    auto pipeline = Pipeline::Make(
        agent(), options,
        std::vector<StageModule>(modules_.begin(), modules_.end()));
    EXPECT_THAT(pipeline, IsOk());
    return pipeline.ok() ? *std::move(pipeline) : nullptr;
  }
  void FreezeNorm(const Module<NoisyStage>& module) {
    ASSERT_THAT(agent().Async<&EvalNorm>(module.owner(), module.ref()).Await(),
                IsOk());
  }
  std::vector<std::string> AllModes() {
    std::vector<std::string> all;
    for (const auto& module : modules_) {
      auto modes =
          agent().Async<&ModesOf>(module.owner(), module.ref()).Await();
      EXPECT_THAT(modes, IsOk());
      all.push_back(modes.value_or("?"));
    }
    return all;
  }

  // What some steps of new modules, one with a frozen norm, come to.
  struct Training {
    std::vector<double> losses;
    std::vector<nn::StateMap> states;
  };
  void Train(bool recompute, const std::string& schedule, Training& training) {
    MakeModules();
    FreezeNorm(modules_[1]);
    auto pipeline = MakePipeline(recompute, schedule);
    ASSERT_NE(pipeline, nullptr);
    std::vector<ParameterSource> sources;
    for (const auto& module : modules_) sources.push_back(module.ref());
    Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, sources);
    for (int step = 0; step < 4; ++step) {
      Context ctx(agent());
      auto result = pipeline->Step(ctx, x_, labels_);
      ASSERT_THAT(result, IsOk());
      ASSERT_THAT(sgd.Step(ctx), IsOk());
      training.losses.push_back(result->loss);
    }
    for (const auto& module : modules_) {
      training.states.push_back(*module.StateDict().Await());
    }
  }

  testing::TrainingCluster cluster_;
  std::vector<Module<NoisyStage>> modules_;
  Tensor x_, labels_;
};

TEST_F(StageTest, AnEvaluationLeavesEveryModuleInTheModeItHad) {
  auto pipeline = MakePipeline(false, "gpipe");
  FreezeNorm(modules_[0]);
  ASSERT_THAT(modules_[2].Eval().Await(), IsOk());
  const std::vector<std::string> modes = {"TTET", "TTTT", "EEEE"};
  ASSERT_EQ(AllModes(), modes);
  auto first = pipeline->Evaluate(x_, labels_);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(AllModes(), modes);
  EXPECT_FALSE(
      pipeline->Evaluate(test::Put(Tensor::Ones({12, 7})), labels_).ok());
  EXPECT_EQ(AllModes(), modes);
  // Nothing was dropped, no statistics moved.
  auto second = pipeline->Evaluate(x_, labels_);
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(ops::BitEqual(first->outputs[0], second->outputs[0]));
}

TEST_F(StageTest, AStepLeavesFrozenModulesFrozen) {
  auto pipeline = MakePipeline(false, "gpipe");
  FreezeNorm(modules_[0]);
  ASSERT_THAT(modules_[2].Eval().Await(), IsOk());
  const std::string mean = "norm.running_mean";
  const Tensor frozen = modules_[2].StateDict().Await()->at(mean);
  const Tensor training = modules_[1].StateDict().Await()->at(mean);
  Context ctx(agent());
  ASSERT_THAT(pipeline->Evaluate(x_, labels_), IsOk());
  ASSERT_THAT(pipeline->Step(ctx, x_, labels_), IsOk());
  EXPECT_EQ(AllModes(), std::vector<std::string>({"TTET", "TTTT", "EEEE"}));
  EXPECT_TRUE(ops::BitEqual(modules_[2].StateDict().Await()->at(mean), frozen));
  EXPECT_FALSE(
      ops::BitEqual(modules_[1].StateDict().Await()->at(mean), training));
}

TEST_F(StageTest, RecomputedForwardsDrawTheSameRandomNumbers) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "auto"}) {
    Training kept, recomputed;
    ASSERT_NO_FATAL_FAILURE(Train(false, schedule, kept));
    ASSERT_NO_FATAL_FAILURE(Train(true, schedule, recomputed));
    EXPECT_EQ(kept.losses, recomputed.losses);
    for (size_t i = 0; i < kept.states.size(); ++i) {
      for (const auto& [name, tensor] : kept.states[i]) {
        EXPECT_TRUE(ops::BitEqual(recomputed.states[i].at(name), tensor))
            << "stage " << i << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace baton::dist

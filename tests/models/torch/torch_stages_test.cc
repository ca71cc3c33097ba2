// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/nn/loss.h"
#include "models/torch/torch_module.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using ::baton::test::Put;
using ::testing::IsEmpty;
using ::testing::Not;

// A part of a network, all of it torch's.
struct TorchStage final : nn::TorchModule {
  TorchStage(int64_t in, int64_t out)
      : TorchModule(::torch::nn::Sequential(
            ::torch::nn::Linear(in, out),
            ::torch::nn::BatchNorm1d(
                ::torch::nn::BatchNorm1dOptions(out).momentum(0.5)),
            ::torch::nn::Tanh())) {}
  static std::unique_ptr<TorchStage> Make(int64_t in, int64_t out,
                                          uint64_t seed) {
    ::torch::manual_seed(seed);
    auto made = std::make_unique<TorchStage>(in, out);
    made->To(test::TestDevice());
    return made;
  }
  using Exports = rpc::Methods<&TorchStage::Make, &TorchStage::Forward>;
};

class TorchStagesTest : public ::testing::Test {
 protected:
  static void AddTypes(rpc::Registry& registry) {
    RegisterPipeline(registry);
    RegisterOptimizer<optim::Sgd>(registry);
    RegisterModule<TorchStage>(registry);
    registry.AddFunction<&testing::GradientsAt<TorchStage>>();
  }
  rpc::Agent& agent() { return cluster_.alice(); }
  // At bob and carol; the same here.
  Module<TorchStage> At(const char* worker, int64_t in, int64_t out) {
    local_.push_back(TorchStage::Make(in, out, 5));
    return *Module<TorchStage>::Create(agent(), worker, in, out, uint64_t{5})
                .Await();
  }
  Variable ForwardLocally() {
    Variable value(x_);
    for (const auto& module : local_) value = module->Forward(value);
    return value;
  }
  void ExpectGradientsEqual(const Context& ctx,
                            const std::vector<Module<TorchStage>>& remote) {
    for (size_t i = 0; i < remote.size(); ++i) {
      const auto grads = agent()
                             .Async<&testing::GradientsAt<TorchStage>>(
                                 remote[i].owner(), ctx, remote[i].ref())
                             .Await();
      ASSERT_THAT(grads, testing::IsOk());
      const auto parameters = local_[i]->Parameters();
      for (size_t p = 0; p < parameters.size(); ++p)
        EXPECT_TRUE(ops::BitEqual((*grads)[p], parameters[p].grad()))
            << "module " << i << ", parameter " << p;
    }
  }
  void ExpectSameState(const std::vector<Module<TorchStage>>& remote) {
    for (size_t i = 0; i < remote.size(); ++i) {
      const auto state = remote[i].StateDict().Await();
      ASSERT_THAT(state, testing::IsOk());
      EXPECT_THAT(*state, Not(IsEmpty()));
      for (const auto& [name, tensor] : local_[i]->StateDict())
        EXPECT_TRUE(ops::BitEqual(state->at(name), tensor)) << name;
    }
  }

  testing::TrainingCluster cluster_{3, AddTypes};
  std::vector<std::shared_ptr<TorchStage>> local_;
  Generator generator_{11};
  const Tensor x_ = Put(RandNormal({12, 6}, generator_));
  const Tensor labels_ = Put(RandInt(0, 4, {12}, generator_));
};

TEST_F(TorchStagesTest, RemoteModulesTrainAsInOneProcess) {
  const std::vector remote = {At("bob", 6, 8), At("carol", 8, 4)};
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.5}, {remote[0], remote[1]});
  std::vector<Variable> parameters;
  for (const auto& module : local_) {
    for (const Variable& parameter : module->Parameters())
      parameters.push_back(parameter);
  }
  optim::Sgd local(parameters, {.lr = 0.5});
  for (int step = 0; step < 3; ++step) {
    Context ctx(agent());
    const auto hidden = remote[0].Forward(ctx, x_);
    const auto y = remote[1].Forward(ctx, hidden).Await();
    ASSERT_THAT(y, testing::IsOk());
    ASSERT_THAT(ctx.Backward(nn::CrossEntropy(*y, labels_)), testing::IsOk());
    for (const auto& module : local_) module->ZeroGrad();
    nn::CrossEntropy(ForwardLocally(), labels_).Backward();
    ExpectGradientsEqual(ctx, remote);
    ASSERT_THAT(sgd.Step(ctx), testing::IsOk());
    local.Step();
    ExpectSameState(remote);
  }
}

TEST_F(TorchStagesTest, APipelinesGradientsAreThoseOfAccumulation) {
  const std::vector remote = {At("bob", 6, 8), At("carol", 8, 4)};
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    SCOPED_TRACE(schedule);
    PipelineOptions options;
    options.split_size = 4;
    options.schedule.name = schedule;
    auto pipeline = Pipeline::Make(agent(), options, {remote[0], remote[1]});
    ASSERT_THAT(pipeline, testing::IsOk());
    for (int step = 0; step < 2; ++step) {
      Context ctx(agent());
      const auto result = (*pipeline)->Step(ctx, x_, labels_);
      ASSERT_THAT(result, testing::IsOk());
      for (const auto& module : local_) module->ZeroGrad();
      double loss = 0;
      for (const RowRange& rows : SplitRows(12, 4)) {
        Variable value(x_.Slice(0, rows.begin, rows.end));
        for (const auto& module : local_) value = module->Forward(value);
        const Variable part = autograd::MulScalar(
            nn::CrossEntropy(value, labels_.Slice(0, rows.begin, rows.end)),
            1.0 / 3);
        loss += part.tensor().Item();
        part.Backward();
      }
      EXPECT_NEAR(result->loss, loss, 1e-6);
      ExpectGradientsEqual(ctx, remote);
      ExpectSameState(remote);
    }
  }
}

// What recomputes activations puts back the statistics that this moved.
TEST_F(TorchStagesTest, RecomputedActivationsGiveTheSameGradients) {
  const std::vector remote = {At("bob", 6, 8), At("carol", 8, 4)};
  PipelineOptions options;
  options.recompute = true;
  auto pipeline = Pipeline::Make(agent(), options, {remote[0], remote[1]});
  ASSERT_THAT(pipeline, testing::IsOk());
  Context ctx(agent());
  ASSERT_THAT((*pipeline)->Step(ctx, x_, labels_), testing::IsOk());
  nn::CrossEntropy(ForwardLocally(), labels_).Backward();
  ExpectGradientsEqual(ctx, remote);
  ExpectSameState(remote);
}

// A step that the workers take by themselves, and one that broke before it.
TEST_F(TorchStagesTest, AStepOfThePipelinesOptimizerMovesTorchsParameters) {
  const std::vector remote = {At("bob", 6, 8), At("carol", 8, 4)};
  auto pipeline = Pipeline::Make(agent(), {.split_size = 6, .schedule = {}},
                                 {remote[0], remote[1]});
  ASSERT_THAT(pipeline, testing::IsOk());
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.5}, {remote[0], remote[1]});
  EXPECT_FALSE(
      (*pipeline)->Step(sgd, Put(Tensor::Ones({12, 7})), labels_).ok());
  ExpectSameState(remote);
  double first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    const auto result = (*pipeline)->Step(sgd, x_, labels_);
    ASSERT_THAT(result, testing::IsOk());
    (step == 0 ? first : last) = result->loss;
  }
  EXPECT_LT(last, 0.8 * first);
}

}  // namespace
}  // namespace baton::dist

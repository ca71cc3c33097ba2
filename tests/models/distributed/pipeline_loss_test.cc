// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::HasSubstr;
using testing::IsOk;

// A user's own: the squared error over a noise that it learns, and that noise's
// price; keeps a running mean of the error. Refuses a first target above 100.
class NoiseLoss final : public nn::LossModule {
 public:
  explicit NoiseLoss(double noise)
      : noise_(RegisterParameter("noise", Tensor::Full({1}, noise))),
        seen_(RegisterBuffer("seen", Tensor::Zeros({1}))) {}
  Variable Loss(const Variable& outputs, const Tensor& targets) override {
    Require(targets.Slice(0, 0, 1).ToVector<float>()[0] <= 100, "noise_loss",
            "such a target cannot be");
    const Variable error = nn::MseLoss(outputs, targets);
    if (is_training()) {
      ops::ScaleInto(seen_, 0.9);
      ops::AddInto(seen_, error.tensor().Reshape({1}), 0.1);
    }
    return error * autograd::Exp(-noise_) + noise_;
  }
  using Exports = rpc::Methods<rpc::kConstructor<double>>;

 private:
  Variable& noise_;
  Tensor& seen_;
};

struct ForgottenLoss final : nn::LossModule {
  using Exports = rpc::Methods<rpc::kConstructor<>>;
};

void AddNoiseTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<DenseStage>(registry);
  RegisterLoss<NoiseLoss>(registry);
  RegisterModule<ForgottenLoss>(registry);  // which is too little
}

class PipelineLossTest : public ::testing::Test {
 protected:
  PipelineLossTest() : cluster_(3, AddNoiseTypes) {
    SetDeterministic(true);
    Generator generator(11);
    x_ = test::Put(RandNormal({10, 6}, generator));
    targets_ = test::Put(RandNormal({10, 4}, generator));
    front_ = *Module<DenseStage>::Create(agent(), "bob", 6, 8, true, 5).Await();
    back_ =
        *Module<DenseStage>::Create(agent(), "carol", 8, 4, false, 6).Await();
    loss_ = *Module<NoiseLoss>::Create(agent(), "carol", 0.5).Await();
  }
  ~PipelineLossTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  void MakePipeline(bool recompute) {
    pipeline_ = nullptr;
    auto made = Pipeline::Make(
        agent(), {.split_size = 4, .loss = loss_, .recompute = recompute},
        {front_, back_});
    ASSERT_THAT(made, IsOk());
    pipeline_ = *std::move(made);
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        agent(), optim::SgdOptions{.lr = 0.1},
        std::vector<ParameterSource>{front_.ref(), back_.ref(), loss_.ref()});
  }
  static void ExpectState(const nn::StateMap& state, const nn::Module& wanted) {
    ASSERT_EQ(state.size(), wanted.StateDict().size());
    for (const auto& [name, tensor] : wanted.StateDict())
      EXPECT_TRUE(ops::BitEqual(state.at(name), tensor)) << name;
  }

  testing::TrainingCluster cluster_;
  Tensor x_, targets_;
  Module<DenseStage> front_, back_;
  Module<NoiseLoss> loss_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
};

// Bit for bit, its parameter and its state included, which a forward that is
// run again does not move twice.
TEST_F(PipelineLossTest, AUsersOwnLossTrainsAsInOneProcess) {
  DenseStage front(6, 8, true, 5), back(8, 4, false, 6);
  NoiseLoss loss(0.5);
  std::vector<Variable> parameters;
  for (nn::Module* module : std::vector<nn::Module*>{&front, &back, &loss}) {
    module->To(test::TestDevice());
    for (const Variable& each : module->Parameters())
      parameters.push_back(each);
  }
  optim::Sgd sgd(parameters, {.lr = 0.1});
  for (const bool recompute : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(MakePipeline(recompute));
    for (int i = 0; i < 2; ++i) {
      const auto step = pipeline_->Step(*sgd_, x_, targets_);
      ASSERT_THAT(step, IsOk());
      double sum = 0;
      sgd.ZeroGrad();
      for (const RowRange& rows : SplitRows(10, 4)) {
        const Variable output =
            back.Forward(front.Forward(x_.Slice(0, rows.begin, rows.end)));
        const Variable part = autograd::MulScalar(
            loss.Loss(output, targets_.Slice(0, rows.begin, rows.end)),
            static_cast<double>(rows.size()) / 10);
        sum += part.tensor().Item();
        part.Backward();
      }
      sgd.Step();
      EXPECT_EQ(step->loss, sum);
    }
    ExpectState(*front_.StateDict().Await(), front);
    ExpectState(*back_.StateDict().Await(), back);
    ExpectState(*loss_.StateDict().Await(), loss);
  }
  EXPECT_NE(loss.Parameters()[0].tensor().Item(), 0.5);
}

TEST_F(PipelineLossTest, GradientsOfItsParametersGoToTheContext) {
  ASSERT_NO_FATAL_FAILURE(MakePipeline(false));
  const nn::StateMap before = *loss_.StateDict().Await();
  Context ctx(agent());
  ASSERT_THAT(pipeline_->Step(ctx, x_, targets_), IsOk());
  ASSERT_THAT(sgd_->Step(ctx), IsOk());
  const nn::StateMap after = *loss_.StateDict().Await();
  EXPECT_FALSE(ops::BitEqual(after.at("noise"), before.at("noise")));
}

TEST_F(PipelineLossTest, EvaluationLeavesItAsItIs) {
  ASSERT_NO_FATAL_FAILURE(MakePipeline(false));
  const auto result = pipeline_->Evaluate(x_, targets_);
  ASSERT_THAT(result, IsOk());
  EXPECT_NE(result->loss, 0);
  NoiseLoss loss(0.5);
  loss.To(test::TestDevice());
  ExpectState(*loss_.StateDict().Await(), loss);
  // It trains again.
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, targets_), IsOk());
  EXPECT_NE(loss_.StateDict().Await()->at("seen").Item(), 0);
}

// The second micro-batch is refused when the first has moved the running mean.
TEST_F(PipelineLossTest, ABrokenStepLeavesItAsItWas) {
  ASSERT_NO_FATAL_FAILURE(MakePipeline(false));
  Tensor wrong = targets_.To(Device::Cpu()).Clone();
  wrong.Slice(0, 4, 5).CopyFrom(Tensor::Full({1, 4}, 1000));
  const auto broken = pipeline_->Step(*sgd_, x_, test::Put(wrong));
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr("carol"));
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("stage 1 of 2: forward of micro-batch 1: [noise_loss] "
                        "such a target cannot be"));
  NoiseLoss loss(0.5);
  loss.To(test::TestDevice());
  ExpectState(*loss_.StateDict().Await(), loss);
  EXPECT_THAT(pipeline_->Step(*sgd_, x_, targets_), IsOk());
}

TEST_F(PipelineLossTest, ItBelongsToTheLastStagesWorker) {
  const auto there = *Module<NoiseLoss>::Create(agent(), "bob", 0.5).Await();
  const auto refused =
      Pipeline::Make(agent(), {.loss = there}, {front_, back_});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("the loss is at bob, but the last stage, whose outputs "
                        "it takes, at carol"));
}

TEST_F(PipelineLossTest, OneThatNobodyRegisteredIsNamedWithTheLineToAdd) {
  const auto loss = *Module<ForgottenLoss>::Create(agent(), "carol").Await();
  EXPECT_THAT(
      Pipeline::Make(agent(), {.loss = loss}, {front_, back_}),
      testing::Fails(absl::StatusCode::kUnimplemented,
                     "carol, loss ForgottenLoss: not registered on this "
                     "worker: call dist::RegisterLoss<ForgottenLoss>(registry) "
                     "before joining, in every process"));
}

}  // namespace
}  // namespace baton::dist

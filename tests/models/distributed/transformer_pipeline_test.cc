// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/tied.h"
#include "models/distributed/transformer_stage.h"
#include "models/nn/loss.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::GradientsAt;
using ::testing::HasSubstr;
using Stages = std::vector<Module<TransformerStage>>;

void AddTransformer(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::AdamW>(registry);
  RegisterModule<TransformerStage>(registry);
  RegisterTied<TransformerStage>(registry);
  registry.AddFunction<&GradientsAt<TransformerStage>>();
}

class TransformerPipeline : public ::testing::Test {
 protected:
  TransformerPipeline() : cluster_(4, AddTransformer) {
    Generator generator(7);
    ids_ = test::Put(RandInt(0, 13, {6, 7}, generator));
    targets_ = test::Put(RandInt(0, 13, {6, 7}, generator));
  }
  rpc::Agent& agent() { return cluster_.alice(); }

  Stages MakeStages(bool tied, const std::vector<std::string>& cuts) {
    const char* const workers[] = {"bob", "carol", "dave"};
    Stages stages;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      auto stage =
          Module<TransformerStage>::Create(agent(), workers[i], OptionsOf(tied),
                                           cuts, static_cast<int>(i))
              .Await();
      EXPECT_TRUE(stage.ok()) << stage.status();
      stages.push_back(*stage);
    }
    return stages;
  }
  std::unique_ptr<Pipeline> MakePipeline(const Stages& stages) {
    auto pipeline =
        Pipeline::Make(agent(), {.split_size = 2},
                       std::vector<StageModule>(stages.begin(), stages.end()));
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return *std::move(pipeline);
  }
  std::vector<Tensor> GradientsOf(const Context& ctx,
                                  const Module<TransformerStage>& stage) {
    auto grads = agent()
                     .Async<&GradientsAt<TransformerStage>>(stage.owner(), ctx,
                                                            stage.ref())
                     .Await();
    EXPECT_TRUE(grads.ok()) << grads.status();
    return *grads;
  }
  // Accumulates over the same micro-batches here; the mean loss.
  double AccumulateHere(const std::vector<nn::Module*>& modules) {
    double sum = 0;
    for (const RowRange& rows : SplitRows(6, 2)) {
      Variable value(ids_.Slice(0, rows.begin, rows.end));
      for (nn::Module* module : modules) value = module->Forward(value);
      const Variable loss = autograd::MulScalar(
          nn::CrossEntropy(value, targets_.Slice(0, rows.begin, rows.end)),
          static_cast<double>(rows.size()) / 6);
      sum += loss.tensor().Item();
      loss.Backward();
    }
    return sum;
  }

  models::TransformerOptions OptionsOf(bool tied) const {
    models::TransformerOptions options = options_;
    options.tied = tied;
    return options;
  }
  Tensor GradientOfTokens(const Context& ctx,
                          const Module<TransformerStage>& stage) {
    // Of the embedding it is the first parameter, of the head the last.
    const std::vector<Tensor> all = GradientsOf(ctx, stage);
    return stage.owner().name == "bob" ? all.front() : all.back();
  }

  models::TransformerOptions options_ = {.vocabulary = 13,
                                         .context = 7,
                                         .width = 8,
                                         .layers = 3,
                                         .heads = 2,
                                         .seed = 3};
  testing::TrainingCluster cluster_;
  Tensor ids_, targets_;  // i64 [6, 7]
};

TEST_F(TransformerPipeline, GradientsEqualThoseOfOneProcess) {
  const std::vector<std::string> cuts = {"embedding", "blocks.1"};
  const Stages stages = MakeStages(false, cuts);
  std::vector<std::unique_ptr<models::Transformer>> here;
  std::vector<nn::Module*> modules;
  for (int i = 0; i < 3; ++i) {
    here.push_back(*models::Transformer::MakeStage(OptionsOf(false), cuts, i));
    here.back()->To(test::TestDevice());
    modules.push_back(here.back().get());
  }
  const auto pipeline = MakePipeline(stages);
  Context ctx(agent());
  const auto step = pipeline->Step(ctx, ids_, targets_);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_NEAR(step->loss, AccumulateHere(modules), 1e-6);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<Tensor> grads = GradientsOf(ctx, stages[i]);
    const auto parameters = here[i]->NamedParameters();
    ASSERT_EQ(grads.size(), parameters.size());
    for (size_t p = 0; p < grads.size(); ++p) {
      EXPECT_TRUE(ops::BitEqual(grads[p], parameters[p].value.grad()))
          << i << " " << parameters[p].name;
    }
  }
}

// The copies of a tied weight stay equal, and train as the one of a whole
// model.
TEST_F(TransformerPipeline, TiedStagesTrainAsTheWholeModel) {
  const Stages stages = MakeStages(true, {"blocks.0"});
  const auto whole = *models::Transformer::Make(OptionsOf(true));
  whole->To(test::TestDevice());
  const auto pipeline = MakePipeline(stages);
  const TiedPair tokens(agent(), stages[0], stages[1], "tokens.weight");
  Optimizer<optim::AdamW> adam(agent(), {.lr = 1e-2},
                               {stages[0].ref(), stages[1].ref()});
  optim::AdamW adam_here(whole->Parameters(), {.lr = 1e-2});
  for (int i = 0; i < 5; ++i) {
    Context ctx(agent());
    const auto step = pipeline->Step(ctx, ids_, targets_);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_THAT(tokens.SumGradients(ctx), testing::IsOk());
    ASSERT_THAT(adam.Step(ctx), testing::IsOk());
    adam_here.ZeroGrad();
    EXPECT_NEAR(step->loss, AccumulateHere({whole.get()}), 1e-6) << i;
    adam_here.Step();
  }
  const auto front = stages[0].StateDict().Await();
  const auto back = stages[1].StateDict().Await();
  ASSERT_TRUE(front.ok() && back.ok());
  const Tensor copy = front->at("tokens.weight");
  EXPECT_TRUE(ops::BitEqual(copy, back->at("tokens.weight")));
  // Only the order of the sum of two gradients differs.
  EXPECT_TRUE(
      ops::AllClose(copy, whole->StateDict().at("tokens.weight"), 0, 1e-6));
}

// 75 KiB, of which the trainer sees nothing.
TEST_F(TransformerPipeline, LargeTiedGradientsGoFromWorkerToWorker) {
  options_.vocabulary = 600;
  options_.width = 32;
  const Stages stages = MakeStages(true, {"blocks.0"});
  const auto pipeline = MakePipeline(stages);
  const TiedPair tokens(agent(), stages[0], stages[1], "tokens.weight");
  Context ctx(agent());
  ASSERT_TRUE(pipeline->Step(ctx, ids_, targets_).ok());
  const Tensor front = GradientOfTokens(ctx, stages[0]).Clone();
  const Tensor back = GradientOfTokens(ctx, stages[1]).Clone();
  ASSERT_THAT(tokens.SumGradients(ctx), testing::IsOk());
  for (const auto& stage : stages) {
    EXPECT_TRUE(
        ops::BitEqual(GradientOfTokens(ctx, stage), ops::Add(front, back)));
  }
  int added = 0;
  for (const auto& method : agent().GetDebugInfo().methods) {
    if (method.incoming ||
        method.method.find("AddGradient") == std::string::npos)
      continue;
    added += static_cast<int>(method.calls);
    EXPECT_LT(method.bytes_sent, 10'000u) << method.method;
  }
  EXPECT_EQ(added, 2);
}

TEST_F(TransformerPipeline, ATiedParameterThatIsNotThereIsNamed) {
  const Stages stages = MakeStages(false, {"blocks.0"});
  const auto pipeline = MakePipeline(stages);
  const TiedPair tokens(agent(), stages[0], stages[1], "tokens.weight");
  Context ctx(agent());
  ASSERT_TRUE(pipeline->Step(ctx, ids_, targets_).ok());
  EXPECT_THAT(tokens.SumGradients(ctx).ToString(),
              HasSubstr("no parameter 'tokens.weight'"));
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
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
  std::unique_ptr<Pipeline> MakePipeline(const Stages& stages, bool tied,
                                         PipelineOptions options = {}) {
    options.split_size = 2;
    options.routes = TransformerStage::RoutesOf(
        OptionsOf(tied), static_cast<int>(stages.size()));
    auto pipeline =
        Pipeline::Make(agent(), options,
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
  static std::vector<ParameterSource> SourcesOf(const Stages& stages) {
    std::vector<ParameterSource> sources;
    for (const auto& stage : stages) sources.emplace_back(stage.ref());
    return sources;
  }
  std::unique_ptr<models::Transformer> WholeModel(bool tied) const {
    auto whole = *models::Transformer::Make(OptionsOf(tied));
    whole->To(test::TestDevice());
    return whole;
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
  const auto pipeline = MakePipeline(stages, false);
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

// Bit for bit, since the weight is one, and a micro-batch's gradient of it is
// summed as in the whole model: the head's, then the embedding's. Where W is
// apart from B the two are added to the sum one after the other.
TEST_F(TransformerPipeline, TiedStagesTrainAsTheWholeModel) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    for (const std::vector<std::string>& cuts :
         {std::vector<std::string>{"blocks.0"}, {"embedding", "blocks.1"}}) {
      const Stages stages = MakeStages(true, cuts);
      const auto whole = WholeModel(true);
      const auto pipeline =
          MakePipeline(stages, true, {.schedule = {.name = schedule}});
      Optimizer<optim::AdamW> adam(agent(), {.lr = 1e-2}, SourcesOf(stages));
      optim::AdamW adam_here(whole->Parameters(), {.lr = 1e-2});
      for (int i = 0; i < 5; ++i) {
        const auto step = pipeline->Step(adam, ids_, targets_);
        ASSERT_TRUE(step.ok()) << step.status();
        adam_here.ZeroGrad();
        EXPECT_NEAR(step->loss, AccumulateHere({whole.get()}), 1e-6) << i;
        adam_here.Step();
      }
      const nn::StateMap expected = whole->StateDict();
      size_t found = 0;
      for (const auto& stage : stages) {
        const auto state = stage.StateDict().Await();
        ASSERT_TRUE(state.ok()) << state.status();
        found += state->size();
        for (const auto& [name, value] : *state)
          EXPECT_TRUE(schedule == std::string("zb-h1")
                          ? ops::AllClose(value, expected.at(name), 0, 1e-4)
                          : ops::BitEqual(value, expected.at(name)))
              << schedule << " " << cuts.size() << " " << name;
      }
      EXPECT_EQ(found, expected.size());
    }
  }
}

// 75 KiB, of which the trainer sees nothing.
TEST_F(TransformerPipeline, LargeTiedWeightsGoFromWorkerToWorker) {
  options_.vocabulary = 600;
  options_.width = 32;
  const Stages stages = MakeStages(true, {"embedding", "blocks.0"});
  const auto whole = WholeModel(true);
  const auto pipeline = MakePipeline(stages, true);
  Context ctx(agent());
  ASSERT_TRUE(pipeline->Step(ctx, ids_, targets_).ok());
  AccumulateHere({whole.get()});
  EXPECT_TRUE(ops::BitEqual(GradientsOf(ctx, stages[0]).front(),
                            whole->Parameters().front().grad()));
  for (const auto& method : agent().GetDebugInfo().methods) {
    if (method.incoming) continue;
    EXPECT_LT(method.bytes_sent, 40'000u) << method.method;
  }
}

TEST_F(TransformerPipeline, WithoutRoutesStagesBetweenPassTheTiedWeightOn) {
  const Stages stages = MakeStages(true, {"embedding", "blocks.0"});
  const auto whole = WholeModel(true);
  const auto pipeline = MakePipeline(stages, /*tied=*/false);
  Context ctx(agent());
  const auto step = pipeline->Step(ctx, ids_, targets_);
  ASSERT_TRUE(step.ok()) << step.status();
  AccumulateHere({whole.get()});
  EXPECT_TRUE(ops::BitEqual(GradientsOf(ctx, stages[0]).front(),
                            whole->Parameters().front().grad()));
}

TEST_F(TransformerPipeline, ARouteOfAWeightThatIsNotGivenIsNamed) {
  const auto pipeline =
      MakePipeline(MakeStages(false, {"blocks.0"}), /*tied=*/true);
  const Context ctx(agent());
  EXPECT_THAT(pipeline->Step(ctx, ids_, targets_).status().ToString(),
              HasSubstr("output 1"));
}

}  // namespace
}  // namespace baton::dist

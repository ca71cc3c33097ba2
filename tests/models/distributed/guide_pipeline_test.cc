// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/reduce.h"
#include "core/checkpoint.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/data/batch_loader.h"
#include "models/data/sampler.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/test_files.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/value_stages.h"

// The code that the guides in docs/ show of pipelines and checkpoints
// (cmake/check_snippets.py).
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::IsOk;
using testing::MixStage;

constexpr int64_t kWidth = MixStage::kWidth;

// [decoder]
class Decoder final : public baton::nn::Module {
 public:
  std::vector<baton::Variable> ForwardAll(
      const std::vector<baton::Variable>& values) override {
    // Of the stage before, and what skipped it.
    return {head_(values[0] + values[1])};
  }
  using Exports = baton::rpc::Methods<baton::rpc::kConstructor<>>;

 private:
  baton::Generator generator_{5};
  baton::nn::Linear& head_ =
      MakeModule<baton::nn::Linear>("head", kWidth, 4, generator_);
};
// [end]

// A last stage whose tensors have names that DenseStage has not.
class Head final : public nn::Module {
 public:
  explicit Head(uint64_t seed) : generator_(seed) {}
  Variable Forward(const Variable& x) override { return head_(x); }
  using Exports = rpc::Methods<rpc::kConstructor<uint64_t>, &Head::Forward>;

 private:
  Generator generator_;
  nn::Linear& head_ = MakeModule<nn::Linear>("head", kWidth, 4, generator_);
};

void AddGuidePipelineTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterCheckpoints(registry);
  RegisterOptimizer<optim::Adam>(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<Decoder>(registry);
  RegisterModule<Head>(registry);
  RegisterModule<DenseStage>(registry);
  RegisterModule<MixStage>(registry);
}

class GuidePipelineTest : public ::testing::Test {
 protected:
  GuidePipelineTest() : cluster_(4, AddGuidePipelineTypes) {}
  rpc::Agent& agent() { return cluster_.alice(); }
  template <typename M, typename... Args>
  Module<M> Make(const std::string& worker, const Args&... args) {
    return *Module<M>::Create(agent(), worker, args...).Await();
  }

  testing::TrainingCluster cluster_;
};

struct UNet {
  Module<MixStage> encoder, middle;
  Module<Decoder> decoder;
};

absl::StatusOr<double> StepWithASkip(rpc::Agent& agent, const UNet& net,
                                     const Tensor& images, const Tensor& masks,
                                     const Tensor& labels) {
  const auto& [encoder, middle, decoder] = net;
  dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1},
                                  {encoder, middle, decoder});
  // [routes]
  using baton::dist::kBatch;
  ASSIGN_OR_RETURN(
      auto pipeline,
      baton::dist::Pipeline::Make(
          agent,
          {.split_size = 20,
           .routes = {{.from = 0, .output = 0, .to = 1, .input = 0},
                      {.from = 0, .output = 0, .to = 2, .input = 1},
                      {.from = kBatch, .output = 1, .to = 1, .input = 1}}},
          {encoder, middle, decoder}));
  ASSIGN_OR_RETURN(auto step, pipeline->Step(sgd, {images, masks}, labels));
  // [end]
  return step.loss;
}

TEST_F(GuidePipelineTest, AnActivationAndAMaskSkipStages) {
  Generator generator(1);
  const Tensor images = test::Put(RandNormal({40, kWidth}, generator));
  const Tensor masks =
      test::Put(RandInt(0, 2, {40, kWidth}, generator)).To(DType::kF32);
  const Tensor labels = test::Put(RandInt(0, 4, {40}, generator));
  const MixStage::Options first{.seed = 1}, second{.inputs = 2, .seed = 2};
  const auto loss =
      StepWithASkip(agent(),
                    {Make<MixStage>("bob", first),
                     Make<MixStage>("carol", second), Make<Decoder>("dave")},
                    images, masks, labels);
  ASSERT_THAT(loss, IsOk());

  MixStage encoder(first), middle(second);
  Decoder decoder;
  for (nn::Module* module :
       std::vector<nn::Module*>{&encoder, &middle, &decoder})
    module->To(test::TestDevice());
  const Variable skipped = encoder.ForwardAll({Variable(images)})[0];
  const Variable masked = middle.ForwardAll({skipped, Variable(masks)})[0];
  const Variable logits = decoder.ForwardAll({masked, skipped})[0];
  EXPECT_NEAR(*loss, nn::CrossEntropy(logits, labels).tensor().Item(), 1e-5);
}

// Four batches of two samples.
std::unique_ptr<data::BatchLoader> MakeLoader() {
  auto made = data::BatchLoader::Make(
      std::make_shared<data::FixedBatches>(
          std::make_shared<data::SequentialSampler>(8), 2),
      data::FromSamples([](int64_t sample) -> absl::StatusOr<data::Tensors> {
        return data::Tensors{
            Tensor::Full({kWidth}, static_cast<double>(sample))};
      }),
      {.workers = 0});
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

struct Saved {
  Module<DenseStage> front;
  Module<Head> back;
  std::unique_ptr<data::BatchLoader> loader = MakeLoader();
};

// Trains until `last` steps were taken, from the beginning or from the newest
// checkpoint in `folder`, and saves what has become of it.
absl::Status Train(rpc::Agent& agent, const Saved& training, int64_t last,
                   const std::string& folder, bool resume) {
  const auto& front = training.front;
  const auto& back = training.back;
  const auto& loader = training.loader;
  int64_t step = 0;
  // [checkpointer]
  dist::Optimizer<optim::Adam> adam(agent, {.lr = 1e-3},
                                    {dist::ParameterSource(front).Named(""),
                                     dist::ParameterSource(back).Named("")});
  ASSIGN_OR_RETURN(auto checkpoints, dist::Checkpointer::Make(
                                         agent, {.folder = folder, .keep = 3},
                                         {front, back}, {adam}));
  if (resume) {  // there is a checkpoint in the folder
    ASSIGN_OR_RETURN(auto resumed, checkpoints->Resume(IfBroken::kFail));
    RETURN_IF_ERROR(loader->ImportState(PartOf(resumed.trainer, "loader")));
    step = resumed.step;
  }
  // [end]
  for (; step < last; ++step) {
    ASSIGN_OR_RETURN(const auto batch, loader->Next());
    dist::Context ctx(agent);
    const Future<Variable> hidden = front.Forward(ctx, batch->front());
    ASSIGN_OR_RETURN(const Variable y, back.Forward(ctx, hidden).Await());
    RETURN_IF_ERROR(ctx.Backward(autograd::Sum(y * y)));
    RETURN_IF_ERROR(adam.Step(ctx));
  }
  // [save]
  RETURN_IF_ERROR(
      checkpoints->Save(step, AsPart("loader", loader->ExportState())));
  // [end]
  return checkpoints->Wait();
}

TEST_F(GuidePipelineTest, ATrainingGoesOnFromACheckpoint) {
  const testing::TempFolder folder;
  const auto make = [&](uint64_t seed) {
    return Saved{.front = Make<DenseStage>("bob", kWidth, kWidth, true, seed),
                 .back = Make<Head>("carol", seed + 1)};
  };
  const Saved undisturbed = make(1), begun = make(1), resumed = make(7);
  EXPECT_THAT(Train(agent(), undisturbed, 3, folder / "whole", false), IsOk());
  EXPECT_THAT(Train(agent(), begun, 2, folder / "run", false), IsOk());
  EXPECT_THAT(Train(agent(), resumed, 3, folder / "run", true), IsOk());
  const nn::StateMap expected = *undisturbed.front.StateDict().Await();
  const nn::StateMap state = *resumed.front.StateDict().Await();
  for (const auto& [name, value] : state)
    EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-5, 1e-6)) << name;
}

}  // namespace
}  // namespace baton::dist

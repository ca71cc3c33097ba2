// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/resnet_stage.h"
#include "models/distributed/transformer_stage.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/test_files.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::NoisyStage;

const char* const kSavers[] = {"bob", "carol", "dave"};

void AddCheckpointTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterCheckpoints(registry);
  RegisterOptimizer<optim::Adam>(registry);
  RegisterModule<ResNetStage>(registry);
  RegisterModule<NoisyStage>(registry);
  RegisterModule<TransformerStage>(registry);
}

// A small ResNet in stages, one a worker, with all that a checkpoint has of it.
struct TrainedResNet {
  std::vector<Module<ResNetStage>> stages;
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<Optimizer<optim::Adam>> adam;
  std::unique_ptr<Checkpointer> checkpoints;
};

class CheckpointerTest : public ::testing::Test {
 protected:
  CheckpointerTest() : cluster_(4, AddCheckpointTypes) {
    Generator generator(11);
    for (int i = 0; i < kBatches; ++i) {
      images_.push_back(test::Put(RandNormal({4, 3, 16, 16}, generator)));
      labels_.push_back(test::Put(RandInt(0, 4, {4}, generator)));
    }
  }
  rpc::Agent& agent() { return cluster_.alice(); }

  models::ResNetOptions Model(uint64_t seed) const {
    return {.depth = 18,
            .num_classes = 4,
            .width = 4,
            .cifar_stem = true,
            .seed = seed};
  }
  // Weights that Resume has to replace: `seed` differs from training to
  // training.
  TrainedResNet Make(const std::vector<std::string>& cuts, uint64_t seed,
                     int keep = 3) {
    TrainedResNet made;
    std::vector<ParameterSource> sources;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      made.stages.push_back(*Module<ResNetStage>::Create(agent(), kSavers[i],
                                                         Model(seed), cuts,
                                                         static_cast<int>(i))
                                 .Await());
      sources.push_back(ParameterSource(made.stages.back().ref()).Named(""));
    }
    made.pipeline = *Pipeline::Make(
        agent(), {.split_size = 2, .compute_threads = 1},
        std::vector<StageModule>(made.stages.begin(), made.stages.end()));
    made.adam = std::make_unique<Optimizer<optim::Adam>>(
        agent(), optim::AdamOptions{.lr = 0.01}, sources);
    made.adam->set_schedule(optim::StepLr({.every = 2, .factor = 0.5}));
    auto checkpoints = Checkpointer::Make(
        agent(), {.folder = folder_ / "run", .keep = keep},
        std::vector<SavedModule>(made.stages.begin(), made.stages.end()),
        {*made.adam});
    EXPECT_THAT(checkpoints, IsOk());
    made.checkpoints = *std::move(checkpoints);
    return made;
  }
  // The losses of steps [from, to).
  std::vector<double> Train(TrainedResNet& net, int from, int to) {
    std::vector<double> losses;
    for (int i = from; i < to; ++i) {
      const auto step =
          net.pipeline->Step(*net.adam, images_[static_cast<size_t>(i)],
                             labels_[static_cast<size_t>(i)]);
      EXPECT_THAT(step, IsOk());
      losses.push_back(step.ok() ? step->loss : -1);
    }
    return losses;
  }
  std::vector<std::string> Shards(int64_t step) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(
             folder_ / absl::StrCat("run/step_", step))) {
      if (entry.path().extension() == ".safetensors")
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  static constexpr int kBatches = 6;
  const testing::TempFolder folder_;
  testing::TrainingCluster cluster_;
  std::vector<Tensor> images_, labels_;
};

TEST_F(CheckpointerTest, ResumedTrainingsHaveTheLossesOfAnUndisturbedOne) {
  const std::vector<std::string> two_stages = {"layer2"};
  const std::vector<std::string> three_stages = {"layer1.0", "layer3"};
  std::vector<double> undisturbed;
  {
    TrainedResNet whole = Make(two_stages, 1);
    undisturbed = Train(whole, 0, kBatches);
  }
  {
    TrainedResNet first = Make(two_stages, 1);
    Train(first, 0, 3);
    const NamedTensors trainer = {{"batch", Tensor::From<int64_t>({3})}};
    ASSERT_THAT(first.checkpoints->Save(3, trainer), IsOk());
    // What follows is no part of it, though it may not be written yet.
    Train(first, 3, 4);
    ASSERT_THAT(first.checkpoints->Wait(), IsOk());
  }
  EXPECT_EQ(Shards(3).size(), 3u);  // of the trainer and two workers
  for (const auto& cuts :
       {two_stages, three_stages, std::vector<std::string>{}}) {
    TrainedResNet resumed = Make(cuts, 5);
    const auto from = resumed.checkpoints->Resume(IfBroken::kFail);
    ASSERT_THAT(from, IsOk());
    EXPECT_EQ(from->step, 3);
    EXPECT_EQ(from->trainer.at("batch").Item(), 3);
    const std::vector<double> losses = Train(resumed, 3, kBatches);
    if (test::TestDevice().is_cpu()) {
      EXPECT_THAT(losses,
                  ElementsAre(undisturbed[3], undisturbed[4], undisturbed[5]))
          << cuts.size() + 1 << " stages";
    } else {
      EXPECT_NEAR(losses[2], undisturbed[5], 1e-3);
    }
  }
}

TEST_F(CheckpointerTest, BrokenShardsAreNamedAndTheOneBeforeIsUsed) {
  std::vector<double> undisturbed;
  {
    TrainedResNet net = Make({"layer2"}, 1);
    undisturbed = Train(net, 0, 2);
    ASSERT_THAT(net.checkpoints->Save(2), IsOk());
    undisturbed.push_back(Train(net, 2, 3).front());
    ASSERT_THAT(net.checkpoints->Save(3), IsOk());
    ASSERT_THAT(net.checkpoints->Wait(), IsOk());
  }
  const std::string torn = Shards(3).back();
  std::filesystem::resize_file(torn, 1000);
  TrainedResNet resumed = Make({"layer2"}, 5);
  const auto refused = resumed.checkpoints->Resume(IfBroken::kFail);
  EXPECT_THAT(refused, Fails(absl::StatusCode::kDataLoss, torn));
  EXPECT_THAT(refused,
              Fails(absl::StatusCode::kDataLoss, "resume from that of step 2"));
  const auto used = resumed.checkpoints->Resume(IfBroken::kUsePrevious);
  ASSERT_THAT(used, IsOk());
  EXPECT_EQ(used->step, 2);
  EXPECT_NEAR(Train(resumed, 2, 3).front(), undisturbed[2],
              test::TestDevice().is_cpu() ? 0 : 1e-3);
  std::filesystem::remove_all(folder_ / "run");
  EXPECT_THAT(resumed.checkpoints->Resume(IfBroken::kUsePrevious),
              Fails(absl::StatusCode::kNotFound, "no checkpoint"));
}

TEST_F(CheckpointerTest, CheckpointsOfAnotherModelAreRefused) {
  {
    TrainedResNet net = Make({}, 1);
    Train(net, 0, 1);
    ASSERT_THAT(net.checkpoints->Save(1), IsOk());
  }
  auto stage =
      *Module<ResNetStage>::Create(agent(), "bob", Model(1),
                                   std::vector<std::string>{"layer2"}, 0)
           .Await();
  Optimizer<optim::Adam> adam(agent(), {.lr = 0.01},
                              {ParameterSource(stage.ref()).Named("")});
  const auto part =
      Checkpointer::Make(agent(), {.folder = folder_ / "run"}, {stage}, {adam});
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT((*part)->Resume(IfBroken::kUsePrevious),
              Fails(absl::StatusCode::kInvalidArgument, "nothing here has"));
  auto other = *Module<NoisyStage>::Create(agent(), "bob", 6, 0.5, 7).Await();
  const auto another =
      Checkpointer::Make(agent(), {.folder = folder_ / "run"}, {other}, {});
  ASSERT_THAT(another, IsOk());
  EXPECT_THAT((*another)->Resume(IfBroken::kFail),
              Fails(absl::StatusCode::kInvalidArgument, "missing"));
  EXPECT_THAT(Checkpointer::Make(agent(), {.folder = folder_ / "run"}, {stage},
                                 {adam, adam}),
              Fails(absl::StatusCode::kInvalidArgument, "optimizer"));
}

// Batch norm's statistics and dropout's generators, of modules that have the
// same names.
TEST_F(CheckpointerTest, BuffersAndGeneratorsGoOnWhereTheyWere) {
  Generator generator(3);
  const Tensor x = test::Put(RandNormal({12, 6}, generator));
  const auto make = [&](uint64_t seed) {
    std::vector<Module<NoisyStage>> pair;
    for (const char* worker : {"bob", "carol"})
      pair.push_back(
          *Module<NoisyStage>::Create(agent(), worker, 6, 0.5, seed).Await());
    return pair;
  };
  const auto checkpoints_of = [&](const std::vector<Module<NoisyStage>>& pair) {
    return *Checkpointer::Make(
        agent(), {.folder = folder_ / "run"},
        {SavedModule(pair[0]).Named("a"), SavedModule(pair[1]).Named("b")}, {});
  };
  const auto forward = [&](const std::vector<Module<NoisyStage>>& pair) {
    Context ctx(agent());
    Variable y(x);
    for (const auto& module : pair) y = *module.Forward(ctx, y).Await();
    return y.tensor();
  };
  const auto pair = make(7);
  forward(pair);
  {
    const auto checkpoints = checkpoints_of(pair);
    ASSERT_THAT(checkpoints->Save(1), IsOk());
  }
  const Tensor expected = forward(pair);
  const auto other = make(8);
  ASSERT_THAT(checkpoints_of(other)->Resume(IfBroken::kFail), IsOk());
  EXPECT_TRUE(ops::BitEqual(forward(other), expected));
  // Without names they cannot be told apart.
  const auto nameless = *Checkpointer::Make(
      agent(), {.folder = folder_ / "clash"}, {pair[0], pair[1]}, {});
  ASSERT_THAT(nameless->Save(1), IsOk());
  EXPECT_THAT(nameless->Wait(),
              Fails(absl::StatusCode::kInvalidArgument, "different names"));
}

TEST_F(CheckpointerTest, WeightsTravelAsAPlainFile) {
  const std::string file = folder_ / "weights.safetensors";
  TrainedResNet net = Make({"layer2"}, 1);
  Train(net, 0, 1);
  ASSERT_THAT(net.checkpoints->Save(1), IsOk());
  ASSERT_THAT(net.checkpoints->Wait(), IsOk());
  ASSERT_THAT(
      ExportPart(*Checkpoint::Open(folder_ / "run", 1), kModelPart, file),
      IsOk());
  const auto local = *models::ResNet::Make(Model(3));
  const SafeTensors weights = *ReadSafeTensors(file);
  EXPECT_THAT(local->LoadStateDict(weights.tensors), IsOk());
  TrainedResNet other = Make({"layer1", "layer3"}, 9);
  ASSERT_THAT(other.checkpoints->LoadWeights(file), IsOk());
  EXPECT_EQ(net.pipeline->Evaluate(images_[1], labels_[1])->loss,
            other.pipeline->Evaluate(images_[1], labels_[1])->loss);
  SafeTensors more = weights;
  more.tensors["fc.other"] = Tensor::Ones({1});
  ASSERT_THAT(WriteSafeTensors(file, more), IsOk());
  EXPECT_THAT(other.checkpoints->LoadWeights(file),
              Fails(absl::StatusCode::kInvalidArgument, "fc.other"));
  more.tensors.erase("fc.weight");
  ASSERT_THAT(WriteSafeTensors(file, more), IsOk());
  EXPECT_THAT(other.checkpoints->LoadWeights(file),
              Fails(absl::StatusCode::kInvalidArgument, "missing fc.weight"));
  EXPECT_THAT(other.checkpoints->LoadWeights(folder_ / "none"),
              Fails(absl::StatusCode::kNotFound, "none"));
}

// An embedding at one worker and the head at another have copies of a tensor,
// which are one in the checkpoint, and one again in a model that is not cut.
TEST_F(CheckpointerTest, CopiesOfATiedTensorAreOne) {
  Generator generator(4);
  const Tensor ids = test::Put(RandInt(0, 9, {4, 6}, generator));
  const Tensor targets = test::Put(RandInt(0, 9, {4, 6}, generator));
  const auto train = [&](const std::vector<std::string>& cuts, int steps,
                         bool resume) {
    const models::TransformerOptions model{.vocabulary = 9,
                                           .context = 6,
                                           .width = 8,
                                           .layers = 2,
                                           .heads = 2,
                                           .seed = resume ? 2u : 1u};
    std::vector<Module<TransformerStage>> stages;
    std::vector<ParameterSource> sources;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      stages.push_back(*Module<TransformerStage>::Create(agent(), kSavers[i],
                                                         model, cuts,
                                                         static_cast<int>(i))
                            .Await());
      sources.push_back(ParameterSource(stages.back().ref()).Named(""));
    }
    const auto pipeline =
        *Pipeline::Make(agent(), {.split_size = 2, .compute_threads = 1},
                        std::vector<StageModule>(stages.begin(), stages.end()));
    Optimizer<optim::Adam> adam(agent(), {.lr = 0.01}, sources);
    const auto checkpoints = *Checkpointer::Make(
        agent(), {.folder = folder_ / "run"},
        std::vector<SavedModule>(stages.begin(), stages.end()), {adam});
    if (resume) {
      EXPECT_THAT(checkpoints->Resume(IfBroken::kFail), IsOk());
    }
    double loss = 0;
    for (int i = 0; i < steps; ++i) {
      Context ctx(agent());
      loss = pipeline->Step(ctx, ids, targets)->loss;
      EXPECT_THAT(adam.Step(ctx), IsOk());
    }
    if (!resume) {
      EXPECT_THAT(checkpoints->Save(steps), IsOk());
      EXPECT_THAT(checkpoints->Wait(), IsOk());
    }
    return loss;
  };
  train({"blocks.0"}, 2, false);
  const double cut = train({"embedding", "blocks.1"}, 2, true);
  const double whole = train({}, 2, true);
  EXPECT_NEAR(cut, whole, 1e-5);
  const double further = train({"blocks.0"}, 4, false);
  EXPECT_NEAR(cut, further, 1e-5);
}

TEST_F(CheckpointerTest, AWorkerThatDiesBreaksTheSaveAlone) {
  TrainedResNet net = Make({"layer2"}, 1);
  Train(net, 0, 1);
  ASSERT_THAT(net.checkpoints->Save(1), IsOk());
  ASSERT_THAT(net.checkpoints->Wait(), IsOk());
  cluster_.Kill("carol");
  absl::Status status = net.checkpoints->Save(2);
  if (status.ok()) status = net.checkpoints->Wait();
  EXPECT_THAT(std::string(status.message()), HasSubstr("carol"));
  EXPECT_THAT(CheckpointSteps(folder_ / "run"), ElementsAre(1));
}

}  // namespace
}  // namespace baton::dist

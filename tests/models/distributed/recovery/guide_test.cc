// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/distributed/context.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/module.h"
#include "models/distributed/recovery.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"
#include "tests/support/value_stages.h"

// The code that docs/design/stage_recovery.md shows (cmake/check_snippets.py).
namespace baton::dist {
namespace {

using testing::IsOk;
using ::testing::SizeIs;
using Front = testing::MixStage;
using Back = testing::MixStage;

testing::ClusterOptions Workers() {
  testing::ClusterOptions options;
  options.names = {"trainer", "bob", "carol", "spare1"};
  options.fill = [](rpc::Registry& registry) {
    Register(registry);
    RegisterPipeline(registry);
    RegisterCheckpoints(registry);
    RegisterOptimizer<optim::Sgd>(registry);
    RegisterModule<testing::MixStage>(registry);
  };
  options.on_start = Attach;
  return options;
}

// The loss of each of four steps on one batch; `lose` is called before the
// third.
absl::StatusOr<std::vector<double>> TakeSteps(
    dist::RecoverablePipeline* pipeline, const std::function<void()>& lose) {
  Generator generator(3);
  const Tensor images = RandNormal({40, Front::kWidth}, generator);
  const Tensor labels = RandInt(0, Back::kWidth, {40}, generator);
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) {
    if (i == 2) lose();
    // [step]
    ASSIGN_OR_RETURN(auto step, pipeline->Step(images, labels));
    // [end]
    losses.push_back(step.loss);
  }
  return losses;
}

absl::StatusOr<std::vector<double>> Train(rpc::Agent& agent,
                                          const std::string& folder,
                                          const std::function<void()>& lose) {
  const Front::Options spec{.seed = 1};
  const auto make_back = [&](const rpc::Target& worker) {
    return dist::Module<Back>::Create(agent, worker, Back::Options{.seed = 2});
  };
  ASSIGN_OR_RETURN(auto back, make_back("carol").Await());
  // [make]
  const auto make_front = [&](const rpc::Target& worker) {
    return dist::Module<Front>::Create(agent, worker, spec);
  };
  ASSIGN_OR_RETURN(auto front, make_front("bob").Await());
  // [end]
  // [pipeline]
  dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {front, back});
  ASSIGN_OR_RETURN(auto pipeline,
                   dist::RecoverablePipeline::Make(
                       agent, {.split_size = 20}, {},
                       {{front, make_front}, {back, make_back}}, sgd));
  // To go back to where states are lost; may be left out.
  ASSIGN_OR_RETURN(
      auto checkpoints,
      dist::Checkpointer::Make(agent, {.folder = folder},
                               {dist::SavedModule(front).Named("front"),
                                dist::SavedModule(back).Named("back")},
                               {sgd}));
  pipeline->set_checkpoints(checkpoints.get());
  // [end]
  return TakeSteps(pipeline.get(), lose);
}

std::vector<double> LossesOf(bool loses_a_worker) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(Workers());
  const auto losses = Train(cluster["trainer"], folder.path(), [&] {
    if (loses_a_worker) cluster.Kill("bob");
  });
  EXPECT_THAT(losses, IsOk());
  return losses.ok() ? *losses : std::vector<double>();
}

TEST(RecoveryGuide, LossesAreThoseOfAnUndisturbedTraining) {
  SetDeterministic(true);
  const std::vector<double> undisturbed = LossesOf(false);
  EXPECT_THAT(undisturbed, SizeIs(4));
  EXPECT_EQ(LossesOf(true), undisturbed);
  SetDeterministic(false);
}

}  // namespace
}  // namespace baton::dist

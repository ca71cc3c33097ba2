// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/stream.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/stage_streams.h"
#include "models/nn/loss.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// Values that stages on a GPU and on the CPU pass each other, in one worker and
// between two. A stream of the CPU that used a GPU's would throw (StreamUse).
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::GradientsAt;
using testing::IsOk;

constexpr int64_t kPassedWidth = 6;
constexpr size_t kPassedStages = 4;
using StageWorkers = std::array<const char*, kPassedStages>;

// Of the stages in turn.
std::vector<Device> MixedDevices() {
  const Device gpu = test::TestDevice();
  return {gpu, Device::Cpu(), gpu, Device::Cpu()};
}

void AddPassedTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<DenseStage>(registry);
  registry.AddFunction<&GradientsAt<DenseStage>>();
}

std::vector<std::shared_ptr<DenseStage>> LocalStages() {
  std::vector<std::shared_ptr<DenseStage>> stages;
  for (uint64_t seed = 0; seed < kPassedStages; ++seed)
    stages.push_back(
        std::make_unique<DenseStage>(kPassedWidth, kPassedWidth, false, seed));
  return stages;
}

struct PassedBatch {
  Tensor x, labels;
};
PassedBatch MakePassedBatch() {
  Generator generator(3);
  return {RandNormal({8, kPassedWidth}, generator),
          RandInt(0, kPassedWidth, {8}, generator)};
}

// What one process computes on the CPU: gradients of all parameters.
std::vector<Tensor> GradientsOnTheCpu(const PassedBatch& batch) {
  Variable value(batch.x);
  const auto stages = LocalStages();
  for (const auto& stage : stages) value = stage->Forward(value);
  nn::CrossEntropy(value, batch.labels).Backward();
  std::vector<Tensor> gradients;
  for (const auto& stage : stages) {
    for (const Variable& parameter : stage->Parameters())
      gradients.push_back(parameter.grad());
  }
  return gradients;
}

void ExpectClose(const std::vector<Tensor>& got,
                 const std::vector<Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i].defined());
    EXPECT_TRUE(ops::AllClose(got[i].To(Device::Cpu()), wanted[i], 1e-4, 1e-6))
        << i;
  }
}

class PassedValues : public ::testing::TestWithParam<StageWorkers> {};
INSTANTIATE_TEST_SUITE_P(
    , PassedValues,
    ::testing::Values(StageWorkers{"bob", "bob", "bob", "carol"},
                      StageWorkers{"bob", "bob", "bob", "bob"},
                      StageWorkers{"alice", "alice", "alice", "alice"}));

TEST_P(PassedValues, AreWhereTheStageThatUsesThemComputes) {
  const Stream cpu = Stream::Default(Device::Cpu());
  const Tensor value = test::Put(Tensor::Ones({4, 4}));
  AwaitValue(value, cpu);
  if (value.storage()->use() != nullptr) {
    for (const Stream& guest : value.storage()->use()->Guests())
      EXPECT_TRUE(guest.device().is_cuda());
  }
  const PassedBatch batch = MakePassedBatch();
  testing::TrainingCluster cluster(3, AddPassedTypes);
  std::vector<Module<DenseStage>> stages;
  for (size_t i = 0; i < kPassedStages; ++i) {
    stages.push_back(*Module<DenseStage>::Create(
                          cluster.alice(), GetParam()[i],
                          Placement{.device = MixedDevices()[i]}, kPassedWidth,
                          kPassedWidth, false, static_cast<uint64_t>(i))
                          .Await());
  }
  auto pipeline =
      Pipeline::Make(cluster.alice(), {.split_size = 3},
                     std::vector<StageModule>(stages.begin(), stages.end()));
  ASSERT_THAT(pipeline, IsOk());
  const std::vector<Tensor> wanted = GradientsOnTheCpu(batch);
  for (int step = 0; step < 3; ++step) {
    const Context ctx(cluster.alice());
    const auto result = (*pipeline)->Step(ctx, batch.x, batch.labels);
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->bubble.has_value());  // instructions were timed
    std::vector<Tensor> gradients;
    for (const auto& stage : stages) {
      const auto of_stage =
          cluster.alice()
              .Async<&GradientsAt<DenseStage>>(stage.owner(), ctx, stage.ref())
              .Await();
      ASSERT_THAT(of_stage, IsOk());
      gradients.insert(gradients.end(), of_stage->begin(), of_stage->end());
    }
    ExpectClose(gradients, wanted);
  }
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "models/nn/linear.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/training_cluster.h"

// Floating values that lead to no parameter, such as masks, on their way
// through stages.
namespace baton::dist {
namespace {

using testing::IsOk;

constexpr int64_t kMaskedWidth = 32;
constexpr int64_t kRows = 64;
constexpr size_t kStages = 3;

// Of x and a mask: (x mask) W + b and, but for the last stage, the mask. Notes
// which of the two required a gradient.
class MaskedStage final : public nn::Module {
 public:
  explicit MaskedStage(int32_t stage)
      : stage_(static_cast<size_t>(stage)),
        generator_(static_cast<uint64_t>(stage)),
        linear_(MakeModule<nn::Linear>("linear", kMaskedWidth, kMaskedWidth,
                                       generator_)) {}
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override {
    if (values.at(0).requires_grad()) ++Wanted()[stage_].of_x;
    if (values.at(1).requires_grad()) ++Wanted()[stage_].of_mask;
    const Variable y = linear_.Forward(values[0] * values[1]);
    if (stage_ + 1 == kStages) return {y};
    return {y, values[1]};
  }
  struct Counts {
    std::atomic<int> of_x{0}, of_mask{0};
  };
  static std::array<Counts, kStages>& Wanted() {
    static auto* const counts = new std::array<Counts, kStages>;
    return *counts;
  }
  static void Reset() {
    for (Counts& counts : Wanted()) counts.of_x = counts.of_mask = 0;
  }
  using Exports = rpc::Methods<rpc::kConstructor<int32_t>>;

 private:
  const size_t stage_;
  Generator generator_;
  nn::Linear& linear_;
};

void AddMaskedStage(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<MaskedStage>(registry);
}

std::vector<StageModule> MakeStages(
    rpc::Agent& agent, const std::array<const char*, kStages>& workers) {
  std::vector<StageModule> stages;
  for (size_t i = 0; i < kStages; ++i) {
    stages.emplace_back(
        *Module<MaskedStage>::Create(agent, workers[i], static_cast<int32_t>(i))
             .Await());
  }
  return stages;
}

void ExpectNoneOfMasks() {
  for (size_t i = 0; i < kStages; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(MaskedStage::Wanted()[i].of_mask, 0);
    EXPECT_EQ(MaskedStage::Wanted()[i].of_x > 0, i > 0);
  }
}

Values MakeBatch() {
  Generator generator(5);
  return {test::Put(RandNormal({kRows, kMaskedWidth}, generator)),
          test::Put(Tensor::Ones({kRows, kMaskedWidth}))};
}
Tensor Labels() {
  return test::Put(Tensor::Full({kRows}, 1, {.dtype = DType::kI64}));
}

// What came back to the worker for what it has sent to stages elsewhere.
uint64_t BytesOfGradients(const rpc::Agent& worker) {
  uint64_t bytes = 0;
  for (const auto& method : worker.GetDebugInfo().methods) {
    if (!method.incoming && method.method == "Stage::PutInputs")
      bytes += method.bytes_received;
  }
  return bytes;
}

TEST(Constants, GetNoGradientsThatAreComputedOrSentBack) {
  testing::TrainingCluster cluster(4, AddMaskedStage);
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(absl::StrCat("recompute ", recompute));
    MaskedStage::Reset();
    const auto pipeline =
        Pipeline::Make(cluster.alice(),
                       {.split_size = kRows / 2,
                        .recompute = recompute,
                        .windows = WindowsHere()},
                       MakeStages(cluster.alice(), {"bob", "carol", "carol"}));
    ASSERT_THAT(pipeline, IsOk());
    const uint64_t before = BytesOfGradients(cluster.at("bob"));
    const Context ctx(cluster.alice());
    ASSERT_THAT((*pipeline)->Step(ctx, MakeBatch(), Labels()), IsOk());
    ExpectNoneOfMasks();
    // One value's gradients, of two.
    const uint64_t of_x = kRows * kMaskedWidth * sizeof(float);
    const uint64_t bytes = BytesOfGradients(cluster.at("bob")) - before;
    EXPECT_GE(bytes, of_x);
    EXPECT_LT(bytes, of_x + of_x / 2);
    MaskedStage::Reset();
    ASSERT_THAT((*pipeline)->Step(ctx, MakeBatch(), Labels()), IsOk());
    ExpectWindowsFromTheSecondStepOn(**pipeline, 1);
    ExpectNoneOfMasks();
  }
}

TEST(Constants, OfOneProcessGetNoGradientsEither) {
  testing::TrainingCluster cluster(1, AddMaskedStage);
  MaskedStage::Reset();
  const auto pipeline =
      Pipeline::Make(cluster.alice(), {.split_size = kRows / 2},
                     MakeStages(cluster.alice(), {"alice", "alice", "alice"}));
  ASSERT_THAT(pipeline, IsOk());
  const Context ctx(cluster.alice());
  ASSERT_THAT((*pipeline)->Step(ctx, MakeBatch(), Labels()), IsOk());
  ExpectNoneOfMasks();
}

}  // namespace
}  // namespace baton::dist

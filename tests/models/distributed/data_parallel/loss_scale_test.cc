// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "optim/grad_scaler.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

// Replicas whose loss has a scale, as f16 needs it.
namespace baton::dist {
namespace {

using testing::Groups;
using testing::IsOk;
using testing::OnEach;

class Weight final : public nn::Module {
 public:
  explicit Weight(int64_t count = 4)
      : weight_(RegisterParameter("weight", Tensor::Ones({count}))) {}
  Variable LossOf(double slope) const {
    return autograd::MulScalar(autograd::Sum(weight_), slope);
  }
  Variable LossOf(const Tensor& slopes) const {
    return autograd::Sum(autograd::Mul(weight_, Variable(slopes)));
  }
  std::vector<float> values() const {
    return weight_.tensor().ToVector<float>();
  }
  float value() const { return values().back(); }

 private:
  Variable& weight_;
};

TEST(DataParallelLossScale, SkipsAtAllAStepThatOverflowsAtOne) {
  constexpr size_t kRanks = 3;
  const Groups groups(kRanks, {.name = "Shared"});
  OnEach(kRanks, [&](size_t rank) {
    Weight model;
    const auto parallel = DataParallel::Make(model, groups[rank]);
    ASSERT_THAT(parallel, IsOk());
    optim::Sgd sgd(model.Parameters(), {.lr = 1});
    optim::GradScaler scaler({Device::Cpu()}, {.scale = 8, .interval = 2});
    const auto step = [&](double slope) {
      sgd.ZeroGrad();
      ASSERT_THAT((*parallel)->Backward({model.LossOf(slope)},
                                        {scaler.scale(Device::Cpu())}),
                  IsOk());
      scaler.Step(sgd);
    };
    const auto scale = [&] { return scaler.scale(Device::Cpu()).Item(); };
    step(static_cast<double>(rank));  // the mean is 1
    EXPECT_EQ(model.value(), 0);
    EXPECT_EQ(scale(), 8);
    step(rank == 1 ? 1e38 : 0);  // 8 times that is infinite
    EXPECT_EQ(model.value(), 0);
    EXPECT_EQ(scale(), 4);
    step(1);
    step(1);
    EXPECT_EQ(model.value(), -2);
    EXPECT_EQ(scale(), 8);
  });
}

// One member's loss makes one element infinite, and that is in the second
// shard. The third one is padding alone.
TEST(DataParallelLossScale, SkipsAtAllAStepThatOverflowsInOneShard) {
  constexpr size_t kRanks = 3;
  const Groups groups(kRanks, {.name = "Shared"});
  OnEach(kRanks, [&](size_t rank) {
    constexpr int64_t kCount = 20;  // a shard has 16
    Weight model(kCount);
    const auto parallel =
        DataParallel::Make(model, groups[rank], {.shard_optimizer = true});
    ASSERT_THAT(parallel, IsOk());
    optim::Sgd sgd((*parallel)->shards(), {.lr = 1});
    optim::GradScaler scaler({Device::Cpu()}, {.scale = 8, .interval = 2});
    const auto step = [&](float slope_of_last) {
      const Tensor slopes = Tensor::Ones({kCount});
      slopes.data<float>()[kCount - 1] = slope_of_last;
      sgd.ZeroGrad();
      ASSERT_THAT((*parallel)->Backward({model.LossOf(slopes)},
                                        {scaler.scale(Device::Cpu())}),
                  IsOk());
      scaler.Step(sgd);
      ASSERT_THAT((*parallel)->GatherParameters(), IsOk());
    };
    const auto expect = [&](float value, double scale) {
      for (const float each : model.values()) EXPECT_EQ(each, value);
      EXPECT_EQ(scaler.scale(Device::Cpu()).Item(), scale);
    };
    step(1);
    expect(0, 8);
    step(rank == 1 ? 1e38F : 0);
    expect(0, 4);
    step(1);
    step(1);
    expect(-2, 8);
  });
}

}  // namespace
}  // namespace baton::dist

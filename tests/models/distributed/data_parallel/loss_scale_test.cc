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
  Weight() : weight_(RegisterParameter("weight", Tensor::Ones({4}))) {}
  Variable LossOf(double slope) const {
    return autograd::MulScalar(autograd::Sum(weight_), slope);
  }
  float value() const { return weight_.tensor().data<float>()[3]; }

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

}  // namespace
}  // namespace baton::dist

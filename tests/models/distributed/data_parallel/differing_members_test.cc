// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

// Members that differ: in how many inputs they have, in their models, and in
// that one of them fails.
namespace baton::dist {
namespace {

using autograd::Mul;
using autograd::Sum;
using testing::Fails;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

// One parameter, whose gradient at a member is the number it is given.
class Slope final : public nn::Module {
 public:
  Slope() : weight_(RegisterParameter("weight", Tensor::Zeros({2}))) {}
  Variable Loss(float slope) const {
    return Sum(Mul(weight_, Variable(Tensor::Full({2}, slope))));
  }
  const Tensor& weight() const { return weight_.tensor(); }

 private:
  Variable& weight_;
};

TEST(UnevenDataParallel, TakesTheMeanOfThoseThatHaveInputs) {
  const Groups groups(3);
  const std::vector<std::vector<float>> slopes = {{1, 2}, {}, {4, 8, 16}};
  OnEach(3, [&](size_t rank) {
    Slope model;
    auto made =
        DataParallel::Make(model, groups[rank], {.uneven_inputs = true});
    ASSERT_THAT(made, IsOk());
    optim::Sgd sgd(model.Parameters(), {.lr = 1});
    for (const float slope : slopes[rank]) {
      sgd.ZeroGrad();
      ASSERT_THAT((*made)->Backward(model.Loss(slope)), IsOk());
      sgd.Step();
    }
    ASSERT_THAT((*made)->Join(), IsOk());
    // (1 + 4) / 2 + (2 + 8) / 2 + 16.
    EXPECT_FLOAT_EQ(model.weight().data<float>()[1], -23.5f);
  });
}

TEST(UnevenDataParallel, MustBeAskedFor) {
  const Groups groups(1);
  Slope model;
  const auto made = DataParallel::Make(model, groups[0]);
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT((*made)->Join(),
              Fails(absl::StatusCode::kFailedPrecondition, "uneven_inputs"));
}

TEST(ShardedDataParallel, RefusesWhatItCannotDo) {
  const Groups groups(1);
  Slope model;
  EXPECT_THAT(
      DataParallel::Make(model, groups[0],
                         {.uneven_inputs = true, .shard_optimizer = true}),
      Fails(absl::StatusCode::kInvalidArgument, "uneven_inputs"));
}

TEST(BrokenDataParallel, AnErrorAtOneMemberIsToldToAll) {
  const Groups groups(3);
  std::vector<std::unique_ptr<Slope>> models;
  std::vector<std::unique_ptr<DataParallel>> parallels(3);
  for (int i = 0; i < 3; ++i) models.push_back(std::make_unique<Slope>());
  OnEach(3, [&](size_t rank) {
    auto made = DataParallel::Make(*models[rank], groups[rank]);
    ASSERT_THAT(made, IsOk());
    parallels[rank] = *std::move(made);
  });
  OnEach(3, [&](size_t rank) {
    Variable loss = models[rank]->Loss(1);
    if (rank == 1) {
      loss.AddHook([](const Tensor&) -> Tensor {
        throw Error(absl::InternalError("it went wrong here"));
      });
    }
    EXPECT_THAT(parallels[rank]->Backward(loss),
                Fails(absl::StatusCode::kInternal, "it went wrong here"));
  });
}

TEST(BrokenDataParallel, ModelsMustHaveTheSameParameters) {
  const Groups groups(2);
  OnEach(2, [&](size_t rank) {
    Generator generator(1);
    nn::Linear model(4, rank == 0 ? 5 : 6, generator);
    EXPECT_THAT(DataParallel::Make(model, groups[rank]),
                Fails(absl::StatusCode::kFailedPrecondition, "f32[20 + 5]"));
  });
}

}  // namespace
}  // namespace baton::dist

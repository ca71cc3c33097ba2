// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/power_sgd.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/nn/linear.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::dist {
namespace {

using testing::Fails;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

constexpr int64_t kWidth = 24;
constexpr int64_t kClasses = 16;

class Net final : public nn::Module {
 public:
  explicit Net(uint64_t seed)
      : generator_(seed),
        first_(MakeModule<nn::Linear>("first", kWidth, kWidth, generator_)),
        last_(MakeModule<nn::Linear>("last", kWidth, kClasses, generator_)) {}
  Variable Forward(const Variable& x) override {
    return last_(autograd::Relu(first_(x)));
  }

 private:
  Generator generator_;
  nn::Linear& first_;
  nn::Linear& last_;
};

// Of one member's step.
Variable NetLossOf(Net& model, uint64_t seed, int64_t rows) {
  Generator generator(seed);
  const Tensor x = RandNormal({rows, kWidth}, generator);
  // What can be learnt: the largest of the first values.
  const Tensor labels = ops::ArgMax(x.Slice(1, 0, kClasses), 1);
  const Tensor placed = x.To(model.Parameters().front().tensor().dtype());
  return autograd::CrossEntropy(autograd::Cast(model(placed), DType::kF32),
                                labels);
}

// What members train with.
struct Training {
  double loss = 0;  // of the last steps
  int64_t bytes = 0;
  nn::StateMap state;
};

class PowerSgdOf : public ::testing::TestWithParam<size_t> {
 protected:
  size_t ranks() const { return GetParam(); }
  std::unique_ptr<DataParallel> Make(nn::Module& module, size_t rank,
                                     int columns) {
    auto made = DataParallel::Make(
        module, groups_[rank],
        {.buckets = {1000, 1000}, .power_sgd_rank = columns});
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  // By each member.
  std::vector<Training> Train(int columns) {
    std::vector<Training> all(ranks());
    OnEach(ranks(), [&](size_t rank) {
      constexpr uint64_t kSteps = 120, kLast = 20;
      Net model(1);
      const auto parallel = Make(model, rank, columns);
      optim::Sgd sgd(model.Parameters(), {.lr = 0.2, .momentum = 0.5});
      for (uint64_t step = 0; step < kSteps; ++step) {
        sgd.ZeroGrad();
        const Variable loss = NetLossOf(model, step * 10 + rank, 32);
        ASSERT_THAT(parallel->Backward(loss), IsOk());
        sgd.Step();
        if (step + kLast >= kSteps)
          all[rank].loss += loss.tensor().Item() / kLast;
      }
      all[rank].bytes = parallel->figures().bytes / kSteps;
      all[rank].state = model.StateDict();
    });
    return all;
  }

  // Of weights in this dtype, and gradients of so many rows at each member.
  void ExpectMean(DType dtype, int64_t rows, int columns, double tolerance) {
    OnEach(ranks(), [&](size_t rank) {
      Net model(1), whole(1);
      model.LowerPrecision(dtype);
      whole.LowerPrecision(dtype);
      const auto parallel = Make(model, rank, columns);
      for (uint64_t step = 0; step < 3; ++step) {
        model.ZeroGrad();
        ASSERT_THAT(
            parallel->Backward(NetLossOf(model, 10 * step + rank, rows)),
            IsOk());
        std::vector<Tensor> sums;  // over the members
        for (uint64_t other = 0; other < ranks(); ++other) {
          whole.ZeroGrad();
          NetLossOf(whole, 10 * step + other, rows).Backward();
          for (const Variable& each : whole.Parameters())
            sums.push_back(each.grad().To(DType::kF32));
        }
        const auto got = model.Parameters();
        for (size_t i = 0; i < got.size(); ++i) {
          for (size_t other = 1; other < ranks(); ++other)
            ops::AddInto(sums[i], sums[other * got.size() + i]);
          EXPECT_EQ(got[i].grad().dtype(), dtype);
          EXPECT_TRUE(
              ops::AllClose(ops::MulScalar(got[i].grad().To(DType::kF32),
                                           static_cast<double>(ranks())),
                            sums[i], tolerance, tolerance))
              << i << " in step " << step;
        }
      }
    });
  }

  Groups groups_{static_cast<int>(GetParam())};
};

TEST_P(PowerSgdOf, GivesTheMeanOfGradientsOfNoMoreColumns) {
  // The gradient of two rows at each member has as many that differ; two more
  // keep what they span well apart.
  ExpectMean(DType::kF32, 2, static_cast<int>(2 * ranks() + 2), 1e-3);
}

TEST_P(PowerSgdOf, GivesTheMeanOfGradientsInHalfPrecision) {
  ExpectMean(DType::kBF16, 1, static_cast<int>(ranks() + 1), 2e-2);
}

TEST_P(PowerSgdOf, TrainsNearlyAsWellWithFewerBytes) {
  const Training plain = Train(0).front();
  const auto thin = Train(1);
  EXPECT_LT(4 * thin.front().bytes, plain.bytes);
  EXPECT_LT(thin.front().loss, 1.7);  // 2.8 at first
  EXPECT_LT(thin.front().loss, plain.loss + 0.3);
  for (const Training& each : thin)
    for (const auto& [name, value] : each.state)
      EXPECT_TRUE(ops::BitEqual(value, thin.front().state.at(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Ranks, PowerSgdOf, ::testing::Values(1, 2, 3),
                         [](const auto& info) {
                           return absl::StrCat("Of", info.param);
                         });

// A matrix whose gradient is what it is given.
class Matrix final : public nn::Module {
 public:
  explicit Matrix(DType dtype = DType::kF32)
      : weight_(RegisterParameter("weight",
                                  Tensor::Zeros({12, 10}, {.dtype = dtype}))) {}
  Variable Loss(const Tensor& gradient) const {
    return autograd::Sum(autograd::Mul(weight_, Variable(gradient)));
  }
  Tensor gradient() const { return weight_.grad(); }

 private:
  Variable& weight_;
};

class PowerSgdIn : public ::testing::TestWithParam<DType> {};

TEST_P(PowerSgdIn, GivesLaterWhatItCouldNotGiveAtOnce) {
  constexpr int kSteps = 200;
  const Groups groups(1);
  Generator generator(1);
  const Tensor gradient = RandNormal({12, 10}, generator).To(GetParam());
  Matrix model(GetParam());
  const auto parallel =
      DataParallel::Make(model, groups[0], {.power_sgd_rank = 2});
  ASSERT_THAT(parallel, IsOk());
  const Tensor given = Tensor::Zeros({12, 10});
  for (int step = 0; step < kSteps; ++step) {
    model.ZeroGrad();
    ASSERT_THAT((*parallel)->Backward(model.Loss(gradient)), IsOk());
    EXPECT_EQ(model.gradient().dtype(), GetParam());
    if (step == 0) {
      EXPECT_FALSE(ops::AllClose(model.gradient(), gradient, 0.1, 0.1));
    }
    ops::AddInto(given, model.gradient().To(DType::kF32), 1.0 / kSteps);
  }
  EXPECT_TRUE(ops::AllClose(given, gradient.To(DType::kF32), 0.1, 0.1));
  // Two matrices of two columns in f32.
  EXPECT_EQ((*parallel)->figures().bytes, kSteps * (12 + 10) * 2 * 4);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PowerSgdIn,
                         ::testing::Values(DType::kF32, DType::kBF16,
                                           DType::kF16),
                         [](const auto& info) { return Name(info.param); });

TEST(PowerSgd, GoesOnAfterAGradientOfZeros) {
  const Groups groups(1);
  Matrix model;
  const auto parallel =
      DataParallel::Make(model, groups[0], {.power_sgd_rank = 1});
  ASSERT_THAT(parallel, IsOk());
  const Tensor ones = Tensor::Ones({12, 10});
  for (const Tensor& gradient : {ones, Tensor::ZerosLike(ones), ones}) {
    model.ZeroGrad();
    ASSERT_THAT((*parallel)->Backward(model.Loss(gradient)), IsOk());
    EXPECT_TRUE(ops::AllClose(model.gradient(), gradient, 1e-4, 1e-4));
  }
}

TEST(PowerSgd, RefusesWhatItCannotDo) {
  const Groups groups(1);
  Matrix model;
  EXPECT_THAT(
      DataParallel::Make(model, groups[0],
                         {.travel_as = DType::kBF16, .power_sgd_rank = 1}),
      Fails(absl::StatusCode::kInvalidArgument, "power_sgd_rank"));
}

TEST(PowerSgd, RefusesALossScaleBeforeItSendsAnything) {
  const Groups groups(2);
  OnEach(2, [&](size_t rank) {
    Matrix model;
    const auto parallel =
        DataParallel::Make(model, groups[rank], {.power_sgd_rank = 1});
    ASSERT_THAT(parallel, IsOk());
    const Tensor ones = Tensor::Ones({12, 10});
    const size_t before = groups[rank]->records().size();
    EXPECT_THAT(
        (*parallel)->Backward({model.Loss(ones)}, {Tensor::Full({}, 1024)}),
        Fails(absl::StatusCode::kInvalidArgument, "loss scale"));
    EXPECT_EQ(groups[rank]->records().size(), before);
    EXPECT_FALSE(model.gradient().defined());
    ASSERT_THAT((*parallel)->Backward(model.Loss(ones)), IsOk());
    EXPECT_TRUE(ops::AllClose(model.gradient(), ones, 1e-4, 1e-4));
  });
}

}  // namespace
}  // namespace baton::dist

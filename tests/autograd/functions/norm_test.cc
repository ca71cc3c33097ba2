// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/norm.h"

#include <memory>

#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::Put;
using ::baton::testing::GradCheck;
using ::baton::testing::GradCheckOptions;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

// Variances in the denominator amplify f32's rounding.
constexpr GradCheckOptions kLoose = {.f32_tolerance = 2e-4};

Variable Train(Inputs v, bool relu) {
  return BatchNormTrain(v[0], v[1], v[2], v.size() > 3 ? v[3] : Variable(),
                        Tensor(), Tensor(), {.relu = relu});
}

Variable Eval(Inputs v, bool relu) {
  const DType dtype = v[1].dtype();
  const Tensor mean = Put<double>({0.1, -0.2, 0.3}).To(dtype);
  const Tensor variance = Put<double>({0.5, 1.5, 1}).To(dtype);
  return BatchNormEval(v[0], v[1], v[2], v.size() > 3 ? v[3] : Variable(), mean,
                       variance, {.relu = relu});
}

std::vector<Tensor> Affine(const Shape& shape, bool residual) {
  std::vector<Tensor> inputs = {Random(shape), Random({3}, 0.5, 2),
                                Random({3})};
  if (residual) inputs.push_back(Random(shape));
  return inputs;
}

TEST(BatchNormGradients, Train) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Train(v, false); },
                        Affine({4, 3, 2, 2}, false), kLoose));
}

TEST(BatchNormGradients, TrainRelu) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Train(v, true); },
                        Affine({4, 3, 3, 2}, false), kLoose));
}

TEST(BatchNormGradients, TrainResidual) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Train(v, false); },
                        Affine({4, 3, 2, 2}, true), kLoose));
}

TEST(BatchNormGradients, TrainResidualRelu) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Train(v, true); },
                        Affine({4, 3, 2, 3}, true), kLoose));
}

// Of one member.
class Alone final : public BatchPeers {
 public:
  int members() const override { return 1; }
  Tensor Gather(const Tensor& own) override { return own.Unsqueeze(0); }
  void AddUp(const Tensor&) override {}
};

TEST(BatchNormGradients, TrainTogether) {
  for (const bool relu : {false, true}) {
    for (const bool residual : {false, true}) {
      const auto train = [&](Inputs v) {
        return BatchNormTrainTogether(
            v[0], v[1], v[2], residual ? v[3] : Variable(), Tensor(), Tensor(),
            std::make_shared<Alone>(), {.relu = relu});
      };
      EXPECT_TRUE(GradCheck(train, Affine({4, 3, 2, 2}, residual), kLoose));
    }
  }
}

TEST(BatchNormGradients, Eval) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Eval(v, false); },
                        Affine({2, 3, 2, 2}, false), kLoose));
}

TEST(BatchNormGradients, EvalResidualRelu) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Eval(v, true); },
                        Affine({2, 3, 2, 2}, true), kLoose));
}

TEST(BatchNormGradients, TrainUpdatesRunningStatistics) {
  const Tensor mean = Put(Tensor::Zeros({1}));
  const Tensor variance = Put(Tensor::Ones({1}));
  const Variable x(Put<float>({1, 3}, {2, 1, 1, 1}), true);
  BatchNormTrain(x, Put(Tensor::Ones({1})), Put(Tensor::Zeros({1})), {}, mean,
                 variance, {.momentum = 0.5});
  EXPECT_FLOAT_EQ(mean.ToVector<float>()[0], 1);         // (0 + 2) / 2
  EXPECT_FLOAT_EQ(variance.ToVector<float>()[0], 1.5f);  // (1 + 2) / 2
}

}  // namespace
}  // namespace baton::autograd

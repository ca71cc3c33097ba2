// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/function.h"

#include "core/ops/arithmetic.h"
#include "tests/support/gradcheck.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

// Twice x, whose gradient formula says `factor`.
Variable Twice(const Variable& x, double factor) {
  return Record("twice", ops::MulScalar(x.tensor(), 2), {},
                {{x, [factor](const Backprop& p) {
                    return ops::MulScalar(p.dy(), factor);
                  }}});
}

TEST(GradCheck, TellsARightFormulaFromAWrongOne) {
  EXPECT_TRUE(
      GradCheck([](Inputs v) { return Twice(v[0], 2); }, {Random({3})}));
  EXPECT_FALSE(
      GradCheck([](Inputs v) { return Twice(v[0], 2.001); }, {Random({3})}));
}

TEST(Record, RunsNoFormulaThatNothingNeeds) {
  Variable x(Tensor::Ones({1}), true), y(Tensor::Ones({1}));
  int calls = 0;
  const auto formula = [&](const Backprop& p) {
    ++calls;
    return p.dy();
  };
  Record("both", Tensor::Ones({1}), {}, {{x, formula}, {y, formula}})
      .Backward();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(y.grad().defined());
}

TEST(Record, RecordsNothingWithoutAnInputThatRequiresGrad) {
  Variable x(Tensor::Ones({1}));
  EXPECT_FALSE(Twice(x, 2).requires_grad());
  x.set_requires_grad(true);
  NoGrad no_grad;
  EXPECT_FALSE(Twice(x, 2).requires_grad());
}

TEST(RecordMany, TellsItsFormulaWhichOutputsWereUsed) {
  Variable x(Tensor::Ones({1}), true);
  std::vector<bool> used;
  const std::vector<Variable> outputs = RecordMany(
      "three", Tensors(3, Tensor::Ones({1})), {}, {x}, [&](const Backprop& p) {
        for (size_t i = 0; i < 3; ++i) used.push_back(p.dy(i).defined());
        return Tensors{p.dy(1)};
      });
  outputs[1].Backward();
  EXPECT_EQ(used, (std::vector<bool>{false, true, false}));
}

}  // namespace
}  // namespace baton::autograd

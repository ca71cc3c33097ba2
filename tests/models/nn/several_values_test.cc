// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/nn/graphed.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/loss_module.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// Modules and losses of several values.
namespace baton::nn {
namespace {

using ::testing::HasSubstr;

// Of x and integers n: W x + b, its product with n, and n.
class Scaled final : public Module {
 public:
  Scaled() : linear_(MakeModule<Linear>("linear", 4, 3, generator_)) {}
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override {
    const Variable y = linear_.Forward(values.at(0));
    const Tensor n = values.at(1).tensor();
    return {y, y * Variable(n.To(DType::kF32)), n};
  }

 private:
  Generator generator_{3};
  Linear& linear_;
};

std::shared_ptr<Scaled> MakeScaled() {
  auto module = std::make_shared<Scaled>();
  module->To(test::TestDevice());
  return module;
}

std::vector<Variable> Batch(uint64_t seed, bool requires_grad) {
  Generator generator(seed);
  return {Variable(test::Put(RandNormal({5, 4}, generator)), requires_grad),
          test::Put(RandInt(0, 4, {5, 3}, generator))};
}

TEST(Module, ForwardAllOfOneValueIsForward) {
  Generator generator(3);
  Linear linear(4, 3, generator);
  const Variable x(Tensor::Ones({2, 4}));
  const std::vector<Variable> outputs = linear.ForwardAll({x});
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_TRUE(ops::BitEqual(outputs[0].tensor(), linear.Forward(x).tensor()));
  EXPECT_THAT(test::ErrorOf([&] {
                linear.ForwardAll({x, x});
              }),
              HasSubstr("the module takes one value, got 2"));
  EXPECT_THAT(test::ErrorOf([&] { linear.ForwardAll({}); }),
              HasSubstr("the module takes one value, got 0"));
}

TEST(Module, OneOfSeveralValuesHasNoForward) {
  EXPECT_THAT(test::ErrorOf([] {
                Scaled().Forward(Variable(Tensor::Ones({2, 4})));
              }),
              HasSubstr("call ForwardAll"));
}

TEST(Graphed, TakesAndGivesSeveralValues) {
  const auto plain = MakeScaled();
  Graphed graphed(MakeScaled(), {.warm_up = 1});
  for (uint64_t step = 0; step < 5; ++step) {
    const auto given = Batch(step, true), same = Batch(step, true);
    const auto wanted = plain->ForwardAll(given);
    const auto got = graphed.ForwardAll(same);
    ASSERT_EQ(got.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].requires_grad(), wanted[i].requires_grad()) << i;
      EXPECT_TRUE(
          ops::AllClose(got[i].tensor(), wanted[i].tensor(), 1e-5, 1e-6))
          << i;
    }
    // Some steps use one output alone, in turn.
    for (const auto& outputs : {wanted, got}) {
      const Variable loss =
          step < 2 ? autograd::Sum(outputs[step])
                   : autograd::Sum(outputs[0]) + autograd::Sum(outputs[1]);
      loss.Backward();
    }
    EXPECT_TRUE(ops::AllClose(same[0].grad(), given[0].grad(), 1e-5, 1e-6));
  }
  const auto expected = plain->Parameters(), parameters = graphed.Parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(
        ops::AllClose(parameters[i].grad(), expected[i].grad(), 1e-5, 1e-6));
  EXPECT_EQ(graphed.replays(), test::TestDevice().is_cuda() ? 4 : 0);
}

class Ratio final : public LossModule {
 public:
  Variable LossOfAll(const std::vector<Variable>& outputs,
                     const Tensor& targets) override {
    return MseLoss(outputs.at(0), targets) / autograd::Mean(outputs.at(1));
  }
};

class Plain final : public LossModule {
 public:
  Variable Loss(const Variable& outputs, const Tensor& targets) override {
    return MseLoss(outputs, targets);
  }
};

TEST(LossModule, TakesOneOutputOrAll) {
  const Variable ones(Tensor::Ones({3, 2})), twos(Tensor::Full({3, 2}, 2));
  const Tensor zeros = Tensor::Zeros({3, 2});
  EXPECT_EQ(Ratio().LossOfAll({ones, twos}, zeros).tensor().Item(), 0.5);
  EXPECT_EQ(Plain().LossOfAll({twos}, zeros).tensor().Item(), 4);
  EXPECT_THAT(test::ErrorOf([&] {
                Plain().LossOfAll({ones, twos}, zeros);
              }),
              HasSubstr("the loss takes one output, got 2"));
  EXPECT_THAT(test::ErrorOf([&] { Ratio().Loss(ones, zeros); }),
              HasSubstr("call LossOfAll"));
}

TEST(WithLoss, IsTheModuleAndTellsBoth) {
  const auto loss = std::make_shared<Plain>();
  WithLoss both(MakeScaled(), loss);
  const auto outputs = both.ForwardAll(Batch(1, false));
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_TRUE(
      ops::BitEqual(outputs[0].tensor(),
                    MakeScaled()->ForwardAll(Batch(1, false))[0].tensor()));
  both.Eval();
  EXPECT_FALSE(loss->is_training());
  EXPECT_EQ(both.NamedParameters()[0].name, "module.linear.weight");
}

}  // namespace
}  // namespace baton::nn

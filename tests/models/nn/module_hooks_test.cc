// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/nn/sequential.h"
#include "tests/support/error_of.h"

namespace baton::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = 3 x.
class Triple final : public Module {
 public:
  Variable Forward(const Variable& x) override { return x * factor_; }

 private:
  Variable& factor_ = RegisterParameter("factor", Tensor::Full({1}, 3));
};

Variable Leaf(double value) { return Variable(Tensor::Full({1}, value), true); }
double Value(const Tensor& tensor) { return tensor.Item(); }

TEST(ModuleHooks, OfForwardSeeAndReplaceWhatGoesInAndOut) {
  Triple module;
  std::vector<double> seen;
  const auto in = module.AddForwardPreHook([&](Module&, const Variable& x) {
    seen.push_back(Value(x.tensor()));
    return x + Variable(Tensor::Full({1}, 1));
  });
  const auto out = module.AddForwardHook(
      [&](Module& m, const Variable& x, const Variable& y) {
        EXPECT_EQ(&m, &module);
        seen.push_back(Value(x.tensor()));
        seen.push_back(Value(y.tensor()));
        return y * 10.0;
      });
  EXPECT_EQ(Value(module(Leaf(2)).tensor()), 90);
  EXPECT_THAT(seen, ElementsAre(2, 3, 9));
  EXPECT_EQ(Value(module.Forward(Leaf(2)).tensor()), 6);
  in.Remove();
  EXPECT_EQ(Value(module(Leaf(2)).tensor()), 60);
  out.Remove();
  EXPECT_EQ(Value(module(Leaf(2)).tensor()), 6);
  EXPECT_FALSE(module.HasHooks());
}

TEST(ModuleHooks, OfBackwardSeeTheModulesOwnShareOfTheGradient) {
  Triple module;
  std::vector<double> seen;
  const auto hook =
      module.AddBackwardHook([&](const Tensor& of_x, const Tensor& of_y) {
        seen.push_back(Value(of_x));
        seen.push_back(Value(of_y));
        return ops::MulScalar(of_x, 100);
      });
  Variable x = Leaf(2);
  // x goes another way, too.
  autograd::Sum(module(x) * 5.0 + x).Backward();
  EXPECT_THAT(seen, ElementsAre(15, 5));
  EXPECT_EQ(Value(x.grad()), 1501);
  EXPECT_EQ(Value(module.Parameters()[0].grad()), 10);
  hook.Remove();
  x.ZeroGrad();
  autograd::Sum(module(x)).Backward();
  EXPECT_EQ(Value(x.grad()), 3);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(ModuleHooks, OfBackwardGoWithAGraphThatOutlivesItsModule) {
  int calls = 0;
  Variable x = Leaf(2), y;
  {
    Triple module;
    module.AddBackwardHook([&](const Tensor&, const Tensor&) {
      ++calls;
      return Tensor();
    });
    y = module(x);
  }
  autograd::Sum(y).Backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Value(x.grad()), 3);
}

TEST(ModuleHooks, OfBackwardAreCalledWhereTheInputRequiresNoGrad) {
  Triple module;
  std::vector<bool> defined;
  module.AddBackwardHook([&](const Tensor& of_x, const Tensor& of_y) {
    defined = {of_x.defined(), of_y.defined()};
    return Tensor();
  });
  autograd::Sum(module(Variable(Tensor::Ones({1})))).Backward();
  EXPECT_THAT(defined, ElementsAre(false, true));
  const NoGrad no_grad;
  EXPECT_FALSE(module(Leaf(1)).requires_grad());
}

TEST(ModuleHooks, OfPartsAreCalledByTheWhole) {
  auto inner = std::make_shared<Sequential>();
  inner->Emplace<Triple>();
  inner->Emplace<Triple>();
  Sequential outer;
  outer.Emplace<Triple>();
  outer.Add(inner);
  ASSERT_EQ(outer.FindPart("1"), inner.get());
  ASSERT_NE(outer.FindPart("1.0"), nullptr);
  EXPECT_EQ(outer.FindPart("1.2"), nullptr);
  EXPECT_EQ(outer.FindPart(""), &outer);
  std::vector<double> seen;
  outer.FindPart("1.0")->AddForwardHook(
      [&](Module&, const Variable& x, const Variable& y) {
        seen = {Value(x.tensor()), Value(y.tensor())};
        return Variable();
      });
  EXPECT_TRUE(outer.HasHooks());
  EXPECT_EQ(Value(outer(Leaf(1)).tensor()), 27);
  EXPECT_THAT(seen, ElementsAre(3, 9));
}

// Of x and n: 3 x n and n.
class Scaled final : public Module {
 public:
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override {
    return {values.at(0) * values.at(1) * factor_, values.at(1)};
  }

 private:
  Variable& factor_ = RegisterParameter("factor", Tensor::Full({1}, 3));
};

using Variables = std::vector<Variable>;
using Tensors = std::vector<Tensor>;
std::vector<double> Values(const Variables& values) {
  std::vector<double> all;
  for (const Variable& value : values) all.push_back(Value(value.tensor()));
  return all;
}

TEST(ModuleHooks, OfAllValuesSeeAndReplaceWhatGoesInAndOut) {
  Scaled module;
  std::vector<double> seen;
  const auto in =
      module.AddForwardPreHook([&](Module& m, const Variables& values) {
        EXPECT_EQ(&m, &module);
        seen = Values(values);
        return Variables{values[0] + values[1], values[1]};
      });
  const auto out = module.AddForwardHook(
      [&](Module&, const Variables& values, const Variables& outputs) {
        for (double value : Values(values)) seen.push_back(value);
        for (double value : Values(outputs)) seen.push_back(value);
        return Variables{outputs[1], outputs[0]};
      });
  EXPECT_THAT(Values(module(Variables{Leaf(2), Leaf(5)})), ElementsAre(5, 105));
  EXPECT_THAT(seen, ElementsAre(2, 5, 7, 5, 105, 5));
  in.Remove();
  EXPECT_THAT(Values(module(Variables{Leaf(2), Leaf(5)})), ElementsAre(5, 30));
  out.Remove();
  EXPECT_THAT(Values(module(Variables{Leaf(2), Leaf(5)})), ElementsAre(30, 5));
  // An empty list leaves them.
  module.AddForwardPreHook(
      [](Module&, const Variables&) -> Variables { return {}; });
  EXPECT_THAT(Values(module(Variables{Leaf(2), Leaf(5)})), ElementsAre(30, 5));
}

TEST(ModuleHooks, OfAllGradientsSeeThemTogether) {
  Scaled module;
  std::vector<Tensors> of_values, of_outputs;
  module.AddBackwardHook([&](const Tensors& values, const Tensors& outputs) {
    of_values.push_back(values);
    of_outputs.push_back(outputs);
    return Tensors{ops::MulScalar(values[0], 100), Tensor()};
  });
  Variable x = Leaf(2), n = Leaf(5);
  const Variables outputs = module(Variables{x, n});
  autograd::Sum(outputs[0] * 2.0 + outputs[1] * 7.0).Backward();
  ASSERT_EQ(of_values.size(), 1U);
  EXPECT_EQ(Value(of_values[0].at(0)), 2 * 3 * 5);
  EXPECT_EQ(Value(of_values[0].at(1)), 2 * 3 * 2 + 7);
  EXPECT_EQ(Value(of_outputs[0].at(0)), 2);
  EXPECT_EQ(Value(of_outputs[0].at(1)), 7);
  EXPECT_EQ(Value(x.grad()), 3000);
  EXPECT_EQ(Value(n.grad()), 19);
  // Where n requires no gradient, and its output is used by nobody.
  autograd::Sum(module(Variables{x, Variable(Tensor::Full({1}, 5))})[0])
      .Backward();
  ASSERT_EQ(of_values.size(), 2U);
  EXPECT_EQ(Value(of_values[1].at(0)), 15);
  EXPECT_FALSE(of_values[1].at(1).defined());
  EXPECT_FALSE(of_outputs[1].at(1).defined());
}

TEST(ModuleHooks, OfOneValueSayThatTheModuleHasSeveral) {
  Scaled module;
  module.AddForwardPreHook([](Module&, const Variable& x) { return x; }, "one");
  const std::string message = test::ErrorOf([&] {
    module(Variables{Leaf(1), Leaf(1)});
  });
  EXPECT_THAT(message, HasSubstr("hook one: "));
  EXPECT_THAT(message, HasSubstr("the module takes 2"));
  Triple triple;
  triple.AddForwardHook(
      [](Module&, const Variables&, const Variables& outputs) {
        return Variables{outputs[0], outputs[0]};
      },
      "two");
  EXPECT_THAT(test::ErrorOf([&] { triple(Leaf(1)); }),
              HasSubstr("hook two: [module] the hook gave 2 for 1 values"));
}

TEST(ModuleHooks, ThatThrowAreNamed) {
  const auto message = [](const auto& run) {
    try {
      run();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Triple module;
  const auto pre = module.AddForwardPreHook(
      [](Module&, const Variable&) -> Variable { Fail("here", "bad x"); },
      "check");
  EXPECT_THAT(message([&] { module(Leaf(1)); }), HasSubstr("hook check: "));
  pre.Remove();
  module.AddBackwardHook(
      [](const Tensor&, const Tensor&) -> Tensor { Fail("here", "bad dy"); },
      "watch");
  const Variable y = module(Leaf(1));
  EXPECT_THAT(message([&] { autograd::Sum(y).Backward(); }),
              HasSubstr("hook watch: "));
}

}  // namespace
}  // namespace baton::nn

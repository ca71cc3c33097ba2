// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Ops against PyTorch's, at the values where their rules matter: tools/golden's
// ops.py.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/scan.h"
#include "autograd/functions/sort.h"
#include "tests/support/golden/golden_case.h"

namespace baton::autograd {
namespace {

using ::baton::testing::ExpectSame;
using ::baton::testing::GoldenCase;

constexpr double kExact = 1e-13;
using Unary = std::function<Variable(const Variable&)>;
using Binary = std::function<Variable(const Variable&, const Variable&)>;

void ExpectPyTorchs(const std::string& name, const Binary& function) {
  const GoldenCase golden("ops.safetensors", name);
  const Variable a = golden.Leaf("a"), b = golden.Leaf("b");
  const Variable y = function(a, b);
  ExpectSame(y.tensor(), golden["y"], kExact, name);
  y.Backward(golden["dy"]);
  ExpectSame(a.grad(), golden["da"], kExact, name + " da");
  if (b.defined()) ExpectSame(b.grad(), golden["db"], kExact, name + " db");
}
void ExpectPyTorchsOfOne(const std::string& name, const Unary& function) {
  ExpectPyTorchs(
      name, [&](const Variable& a, const Variable&) { return function(a); });
}

// true, false, ... as a column of four.
Tensor Mask() { return test::Put<bool>({true, false, true, false}, {4, 1}); }

TEST(PyTorchsOps, Powers) {
  ExpectPyTorchs("pow", Pow);
  const std::pair<const char*, double> exponents[] = {
      {"-1", -1}, {"0", 0}, {"0.5", 0.5}, {"1", 1}, {"2", 2}, {"3", 3}};
  for (const auto& [name, exponent] : exponents) {
    ExpectPyTorchsOfOne(std::string("pow_") + name,
                        [exponent = exponent](const Variable& a) {
                          return PowScalar(a, exponent);
                        });
  }
}

TEST(PyTorchsOps, Choices) {
  ExpectPyTorchs("where", [](const Variable& a, const Variable& b) {
    return Where(Mask(), a, b);
  });
  ExpectPyTorchsOfOne("masked_fill", [](const Variable& a) {
    return MaskedFill(a, Mask(), -std::numeric_limits<double>::infinity());
  });
  ExpectPyTorchsOfOne("clamp",
                      [](const Variable& a) { return Clamp(a, -1.5, 1.5); });
  ExpectPyTorchs("maximum", Maximum);
  ExpectPyTorchs("minimum", Minimum);
}

TEST(PyTorchsOps, FunctionsOfOneValue) {
  ExpectPyTorchsOfOne("sin", Sin);
  ExpectPyTorchsOfOne("cos", Cos);
  ExpectPyTorchsOfOne("abs", Abs);
}

TEST(PyTorchsOps, SumsAndOrdersAlongAxes) {
  for (const int axis : {0, 1, -1}) {
    const std::string number = std::to_string(axis);
    ExpectPyTorchsOfOne("cumsum_" + number,
                        [axis](const Variable& a) { return CumSum(a, axis); });
    for (const bool down : {false, true}) {
      const std::string end = number + (down ? "_1" : "_0");
      const auto expect = [&](const std::string& name, auto order) {
        ExpectPyTorchsOfOne(name, [&](const Variable& a) {
          const ValuesAndIndices result = order(a);
          const GoldenCase golden("ops.safetensors", name);
          EXPECT_EQ(result.indices.ToVector<int64_t>(),
                    golden["i"].ToVector<int64_t>())
              << name;
          return result.values;
        });
      };
      expect("sort_" + end,
             [&](const Variable& a) { return Sort(a, axis, down); });
      expect("top_k_" + end,
             [&](const Variable& a) { return TopK(a, 2, axis, down); });
    }
  }
}

}  // namespace
}  // namespace baton::autograd

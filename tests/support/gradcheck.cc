// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "autograd/engine.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "tests/support/test_device.h"

namespace baton::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;
using Values = std::vector<double>;

Values ValuesOf(const Tensor& tensor) {
  return tensor.To(DType::kF64).ToVector<double>();
}

Values RandomValues(int64_t count, double low, double high) {
  static std::mt19937_64 engine(20);  // NOLINT: the same in every run
  std::uniform_real_distribution<double> uniform(low, high);
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = uniform(engine);
  return values;
}

struct Evaluated {
  Tensor y;
  std::vector<Tensor> grads;
};

// Returns gradients of sum(y * weights): of input `only`, or of all if it is
// -1.
Evaluated Evaluate(const Function& f, const std::vector<Tensor>& inputs,
                   const Tensor& weights, int only, DType dtype) {
  Variables all, wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool with = only < 0 || static_cast<size_t>(only) == i;
    all.emplace_back(inputs[i].To(dtype), with);
    if (with) wanted.push_back(all.back());
  }
  const Variable y = f(all);
  return {y.tensor(), autograd::Grad({y}, wanted, {weights.To(dtype)})};
}

double Weighted(const Function& f, const std::vector<Tensor>& inputs,
                const Values& weights) {
  NoGrad no_grad;
  const Values y = ValuesOf(f({inputs.begin(), inputs.end()}).tensor());
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * weights[i];
  return sum;
}

Values CentralDifferences(const Function& f, const std::vector<Tensor>& inputs,
                          size_t which, const Values& weights, double step) {
  std::vector<Tensor> moved = inputs;
  const Values center = ValuesOf(inputs[which]);
  Values result(center.size());
  for (size_t i = 0; i < center.size(); ++i) {
    const auto at = [&](double value) {
      Values values = center;
      values[i] = value;
      moved[which] = test::Put(values, inputs[which].shape());
      return Weighted(f, moved, weights);
    };
    result[i] = (at(center[i] + step) - at(center[i] - step)) / (2 * step);
  }
  return result;
}

// `tolerance` is relative to the largest expected value, or to 1.
AssertionResult Near(const Values& got, const Values& expected,
                     double tolerance) {
  if (got.size() != expected.size())
    return AssertionFailure()
           << got.size() << " values for " << expected.size();
  double largest = 1;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - expected[i]) <= tolerance * largest) continue;
    return AssertionFailure()
           << "element " << i << ": " << got[i] << ", expected " << expected[i];
  }
  return AssertionSuccess();
}

AssertionResult CheckInput(const Function& f, const std::vector<Tensor>& inputs,
                           size_t i, const Tensor& weights,
                           const Tensor& gradient,
                           const GradCheckOptions& options) {
  if (!gradient.defined())
    return AssertionFailure() << "input " << i << ": no gradient";
  if (gradient.shape() != inputs[i].shape() || gradient.dtype() != DType::kF64)
    return AssertionFailure()
           << "input " << i << ": gradient " << gradient.ToString();
  AssertionResult near =
      Near(ValuesOf(gradient),
           CentralDifferences(f, inputs, i, ValuesOf(weights), options.step),
           options.tolerance);
  if (!near)
    return AssertionFailure() << "input " << i << ": " << near.message();
  const Evaluated alone =
      Evaluate(f, inputs, weights, static_cast<int>(i), DType::kF64);
  if (!ops::BitEqual(alone.grads[0], gradient))
    return AssertionFailure()
           << "input " << i << ": other gradient when it is the only one";
  return AssertionSuccess();
}

// Gradients are compared bit by bit.
class WhileDeterministic {
 public:
  WhileDeterministic() : former_(Deterministic()) { SetDeterministic(true); }
  ~WhileDeterministic() { SetDeterministic(former_); }
  WhileDeterministic(const WhileDeterministic&) = delete;
  WhileDeterministic& operator=(const WhileDeterministic&) = delete;

 private:
  const bool former_;
};

AssertionResult CheckF32(const Function& f, const std::vector<Tensor>& inputs,
                         const Tensor& weights, const Evaluated& f64,
                         double tolerance) {
  const Evaluated f32 = Evaluate(f, inputs, weights, -1, DType::kF32);
  if (f32.y.dtype() != DType::kF32)
    return AssertionFailure() << "result of f32 is " << Name(f32.y.dtype());
  AssertionResult near = Near(ValuesOf(f32.y), ValuesOf(f64.y), tolerance);
  if (!near) return AssertionFailure() << "f32 result: " << near.message();
  for (size_t i = 0; i < inputs.size(); ++i) {
    near = Near(ValuesOf(f32.grads[i]), ValuesOf(f64.grads[i]), tolerance);
    if (!near)
      return AssertionFailure()
             << "f32 gradient of input " << i << ": " << near.message();
  }
  return AssertionSuccess();
}

}  // namespace

Tensor Random(const Shape& shape, double low, double high) {
  return test::Put(RandomValues(shape.numel(), low, high), shape);
}

AssertionResult GradCheck(const Function& f,
                          const std::vector<Tensor>& host_inputs,
                          const GradCheckOptions& options) {
  const WhileDeterministic scope;
  std::vector<Tensor> inputs;
  for (const Tensor& input : host_inputs) inputs.push_back(test::Put(input));
  Shape shape;
  {
    NoGrad no_grad;
    shape = f({inputs.begin(), inputs.end()}).shape();
  }
  const Tensor weights = test::Put(Random(shape));
  const Evaluated all = Evaluate(f, inputs, weights, -1, DType::kF64);
  for (size_t i = 0; i < inputs.size(); ++i) {
    AssertionResult result =
        CheckInput(f, inputs, i, weights, all.grads[i], options);
    if (!result) return result;
  }
  if (options.f32_tolerance == 0) return AssertionSuccess();
  return CheckF32(f, inputs, weights, all, options.f32_tolerance);
}

}  // namespace baton::testing

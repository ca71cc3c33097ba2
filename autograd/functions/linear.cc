// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/linear.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

Tensor Rows(const Tensor& x) {  // [..., K] -> [rows, K]
  return x.rank() == 1 ? x.Unsqueeze(0) : x.Flatten(0, -2);
}

Tensor Transposed(const Tensor& x) { return x.Transpose(-2, -1); }

// Computes the gradients of x, weight and bias. x and weight are saved first;
// dz is the gradient of the product plus bias.
Tensors LinearBackward(const Backprop& p, const Tensor& dz) {
  const Tensor &x = p.saved(0), &weight = p.saved(1);
  const Tensor rows = Rows(dz);
  Tensors grads(3);
  if (p.needs(0)) grads[0] = ops::Matmul(rows, weight).Reshape(x.shape());
  if (p.needs(1) && p.needs(2)) {
    const auto both = ops::LinearParameterGradients(rows, Rows(x));
    grads[1] = both.weight;
    grads[2] = both.bias;
  } else if (p.needs(1)) {
    grads[1] = ops::Matmul(Transposed(rows), Rows(x));
  } else if (p.needs(2)) {
    grads[2] = ops::Sum(rows, {0});
  }
  return grads;
}

}  // namespace

Variable Matmul(const Variable& given_a, const Variable& given_b) {
  const Variable a = Lowered(given_a), b = Lowered(given_b);
  return Record(
      "matmul", ops::Matmul(a.tensor(), b.tensor()), {a.tensor(), b.tensor()},
      {{a,
        [](const Backprop& p) {
          return ops::SumTo(ops::Matmul(p.dy(), Transposed(p.saved(1))),
                            p.saved(0).shape());
        }},
       {b, [](const Backprop& p) {
          const Tensor &x = p.saved(0), &w = p.saved(1);
          // This is one product, instead of a batch of products that are then
          // summed.
          if (w.rank() == 2)
            return ops::Matmul(Transposed(Rows(x)), Rows(p.dy()));
          return ops::SumTo(ops::Matmul(Transposed(x), p.dy()), w.shape());
        }}});
}

Variable Linear(const Variable& given_x, const Variable& given_weight,
                const Variable& given_bias) {
  const Variable x = Lowered(given_x), weight = Lowered(given_weight),
                 bias = Lowered(given_bias);
  return RecordJoint(
      "linear", ops::Linear(x.tensor(), weight.tensor(), bias.tensor()),
      {x.tensor(), weight.tensor()}, {x, weight, bias},
      [](const Backprop& p) { return LinearBackward(p, p.dy()); },
      GradientParts::kApart);
}

Variable LinearActivation(Activation activation, const Variable& given_x,
                          const Variable& given_weight,
                          const Variable& given_bias) {
  const Variable x = Lowered(given_x), weight = Lowered(given_weight),
                 bias = Lowered(given_bias);
  const auto [y, saved] = ops::LinearActivation(activation, x.tensor(),
                                                weight.tensor(), bias.tensor());
  return RecordJoint(
      "linear_activation", y, {x.tensor(), weight.tensor(), saved},
      {x, weight, bias},
      [activation](const Backprop& p) {
        return LinearBackward(
            p, ops::LinearActivationBackward(activation, p.dy(), p.saved(2)));
      },
      GradientParts::kApart);
}

}  // namespace baton::autograd

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/linear.h"

#include "autograd/functions/function.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

Tensor Rows(const Tensor& x) {  // [..., K] -> [rows, K]
  return x.rank() == 1 ? x.Unsqueeze(0) : x.Flatten(0, -2);
}

Tensor Transposed(const Tensor& x) { return x.Transpose(-2, -1); }

}  // namespace

Variable Matmul(const Variable& a, const Variable& b) {
  return Record(
      "matmul", ops::Matmul(a.tensor(), b.tensor()), {a.tensor(), b.tensor()},
      {{a,
        [](const Backprop& p) {
          return ops::SumTo(ops::Matmul(p.dy(), Transposed(p.saved(1))),
                            p.saved(0).shape());
        }},
       {b, [](const Backprop& p) {
          const Tensor &x = p.saved(0), &w = p.saved(1);
          // One product instead of a batch of them that is then summed.
          if (w.rank() == 2)
            return ops::Matmul(Transposed(Rows(x)), Rows(p.dy()));
          return ops::SumTo(ops::Matmul(Transposed(x), p.dy()), w.shape());
        }}});
}

Variable Linear(const Variable& x, const Variable& weight,
                const Variable& bias) {
  const Shape& shape = x.shape();
  return Record(
      "linear", ops::Linear(x.tensor(), weight.tensor(), bias.tensor()),
      {x.tensor(), weight.tensor()},
      {{x,
        [shape](const Backprop& p) {
          return ops::Matmul(Rows(p.dy()), p.saved(1)).Reshape(shape);
        }},
       {weight,
        [](const Backprop& p) {
          return ops::Matmul(Transposed(Rows(p.dy())), Rows(p.saved(0)));
        }},
       {bias, [](const Backprop& p) { return ops::Sum(Rows(p.dy()), {0}); }}});
}

}  // namespace baton::autograd

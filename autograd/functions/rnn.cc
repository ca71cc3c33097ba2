// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/rnn.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/functions/function.h"

namespace baton::autograd {
namespace {

// Returns the tensors that the gradients need in one list: x, h, c, weights, y
// and what the op saved.
Tensors Flattened(const ops::RnnInputs& in, const ops::RnnResult& result) {
  Tensors all = {in.x, in.h, in.c};
  all.insert(all.end(), in.weights.begin(), in.weights.end());
  all.push_back(result.y);
  all.insert(all.end(), result.saved.begin(), result.saved.end());
  return all;
}

Tensors Gradients(const Backprop& p, const ops::RnnOptions& options,
                  size_t weights, size_t saved) {
  ops::RnnInputs in = {p.saved(0), p.saved(1), p.saved(2), {}};
  size_t next = 3;
  while (next < 3 + weights) in.weights.push_back(p.saved(next++));
  ops::RnnResult result;
  result.y = p.saved(next++);
  while (next < 4 + weights + saved) result.saved.push_back(p.saved(next++));
  const bool lstm = options.cell == ops::RnnCell::kLstm;
  ops::RnnGradients grads = ops::RnnBackward(
      in, result, p.dy(0), p.dy(1), lstm ? p.dy(2) : Tensor(), options);
  Tensors all = {grads.x, grads.h, grads.c};
  all.insert(all.end(), grads.weights.begin(), grads.weights.end());
  return all;
}

}  // namespace

RnnOutputs Rnn(const Variable& given_x, const Variable& given_h,
               const Variable& given_c,
               const std::vector<Variable>& given_weights,
               const ops::RnnOptions& options) {
  const Variable x = Lowered(given_x), h = Lowered(given_h),
                 c = Lowered(given_c);
  const std::vector<Variable> weights = Lowered(given_weights);
  std::vector<Variable> inputs = {x, h, c};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  ops::RnnInputs in = {x.tensor(), h.tensor(), c.tensor(), {}};
  for (const Variable& weight : weights) in.weights.push_back(weight.tensor());
  const bool keep =
      !NoGrad::Active() &&
      std::any_of(inputs.begin(), inputs.end(),
                  [](const Variable& v) { return v.requires_grad(); });
  const ops::RnnResult result = ops::Rnn(in, options, keep);
  Tensors outputs = {result.y, result.h};
  const bool lstm = options.cell == ops::RnnCell::kLstm;
  if (lstm) outputs.push_back(result.c);
  const size_t count = weights.size(), saved = result.saved.size();
  const std::vector<Variable> recorded = RecordMany(
      lstm ? "lstm" : "gru", outputs, Flattened(in, result), inputs,
      [=](const Backprop& p) { return Gradients(p, options, count, saved); });
  return {recorded[0], recorded[1], lstm ? recorded[2] : Variable()};
}

}  // namespace baton::autograd

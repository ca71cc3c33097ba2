// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/activation.h"

#include "autograd/functions/function.h"
#include "core/ops/activation.h"

namespace baton::autograd {
namespace {

Variable Activated(const char* op, Activation function, const Variable& x) {
  const Tensor y = ops::Activate(function, x.tensor());
  const Tensor saved = ops::SavesInput(function) ? x.tensor() : y;
  return Record(op, y, {saved}, {{x, [function](const Backprop& p) {
                                    return ops::ActivateBackward(
                                        function, p.dy(), p.saved(0));
                                  }}});
}

}  // namespace

Variable Relu(const Variable& x) {
  return Activated("relu", Activation::kRelu, x);
}

Variable Sigmoid(const Variable& x) {
  return Activated("sigmoid", Activation::kSigmoid, x);
}

Variable Tanh(const Variable& x) {
  return Activated("tanh", Activation::kTanh, x);
}

Variable Gelu(const Variable& x) {
  return Activated("gelu", Activation::kGelu, x);
}

Variable Silu(const Variable& x) {
  return Activated("silu", Activation::kSilu, x);
}

Variable LeakyRelu(const Variable& x, double slope) {
  return Record("leaky_relu", ops::LeakyRelu(x.tensor(), slope), {x.tensor()},
                {{x, [slope](const Backprop& p) {
                    return ops::LeakyReluBackward(p.dy(), p.saved(0), slope);
                  }}});
}

Variable Dropout(const Variable& x, double p, Generator& generator) {
  const ops::DropoutResult result = ops::Dropout(x.tensor(), p, generator);
  return Record("dropout", result.y, {result.mask},
                {{x, [p](const Backprop& pass) {
                    return ops::DropoutBackward(pass.dy(), pass.saved(0), p);
                  }}});
}

}  // namespace baton::autograd

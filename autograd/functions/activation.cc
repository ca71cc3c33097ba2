// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/activation.h"

#include "autograd/functions/function.h"
#include "core/ops/activation.h"

namespace baton::autograd {

Variable Relu(const Variable& x) {
  const Tensor y = ops::Relu(x.tensor());
  return Record("relu", y, {y}, {{x, [](const Backprop& p) {
                                    return ops::ReluBackward(p.dy(),
                                                             p.saved(0));
                                  }}});
}

Variable Sigmoid(const Variable& x) {
  const Tensor y = ops::Sigmoid(x.tensor());
  return Record("sigmoid", y, {y}, {{x, [](const Backprop& p) {
                                       return ops::SigmoidBackward(p.dy(),
                                                                   p.saved(0));
                                     }}});
}

Variable Tanh(const Variable& x) {
  const Tensor y = ops::Tanh(x.tensor());
  return Record("tanh", y, {y}, {{x, [](const Backprop& p) {
                                    return ops::TanhBackward(p.dy(),
                                                             p.saved(0));
                                  }}});
}

Variable Gelu(const Variable& x) {
  return Record("gelu", ops::Gelu(x.tensor()), {x.tensor()},
                {{x, [](const Backprop& p) {
                    return ops::GeluBackward(p.dy(), p.saved(0));
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

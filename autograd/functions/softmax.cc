// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/softmax.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/softmax.h"

namespace baton::autograd {

Variable Softmax(const Variable& given, int axis) {
  const Variable x = InF32(given);
  const Tensor y = ops::Softmax(x.tensor(), axis);
  return Record("softmax", y, {y}, {{x, [axis](const Backprop& p) {
                                       return ops::SoftmaxBackward(
                                           p.dy(), p.saved(0), axis);
                                     }}});
}

Variable LogSoftmax(const Variable& given, int axis) {
  const Variable x = InF32(given);
  const Tensor y = ops::LogSoftmax(x.tensor(), axis);
  return Record("log_softmax", y, {y}, {{x, [axis](const Backprop& p) {
                                           return ops::LogSoftmaxBackward(
                                               p.dy(), p.saved(0), axis);
                                         }}});
}

}  // namespace baton::autograd

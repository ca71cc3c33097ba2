// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/loss.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/arithmetic.h"
#include "core/ops/softmax.h"

namespace baton::autograd {

Variable CrossEntropy(const Variable& given, const Tensor& labels) {
  const Variable logits = InF32(given);
  const ops::CrossEntropyResult result =
      ops::CrossEntropy(logits.tensor(), labels);
  return Record("cross_entropy", result.loss, {result.log_softmax, labels},
                {{logits, [](const Backprop& p) {
                    return ops::CrossEntropyBackward(p.dy(), p.saved(0),
                                                     p.saved(1));
                  }}});
}

Variable MseLoss(const Variable& given_x, const Variable& given_target) {
  const Variable x = InF32(given_x), target = InF32(given_target);
  return Record("mse_loss", ops::MseLoss(x.tensor(), target.tensor()),
                {x.tensor(), target.tensor()},
                {{x,
                  [](const Backprop& p) {
                    return ops::MseLossBackward(p.dy(), p.saved(0), p.saved(1));
                  }},
                 {target, [](const Backprop& p) {
                    return ops::MseLossBackward(p.dy(), p.saved(1), p.saved(0));
                  }}});
}

}  // namespace baton::autograd

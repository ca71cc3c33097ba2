// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/conv.h"

#include "autograd/functions/function.h"
#include "core/ops/reduce.h"
#include "core/stream.h"

namespace baton::autograd {

Variable Conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const ops::Conv2dOptions& options) {
  return Record(
      "conv2d",
      ops::Conv2d(x.tensor(), weight.tensor(), bias.tensor(), options),
      {x.tensor(), weight.tensor()},
      // The weight first: what runs beside it waits for nothing that follows.
      {{weight,
        [options](const Backprop& p) {
          const StreamScope beside(
              Stream::Beside(CurrentStream(p.dy().device())));
          return ops::Conv2dBackwardWeight(p.dy(), p.saved(0),
                                           p.saved(1).shape(), options,
                                           p.saved(1).SuggestFormat());
        }},
       {x,
        [options](const Backprop& p) {
          return ops::Conv2dBackwardInput(p.dy(), p.saved(1),
                                          p.saved(0).shape(), options);
        },
        [options](const Backprop& p, const Tensor& sum) {
          ops::Conv2dAddBackwardInput(sum, p.dy(), p.saved(1), options);
        }},
       {bias, [](const Backprop& p) {
          return ops::Sum(p.dy(), {0, 2, 3});
        }}});
}

}  // namespace baton::autograd

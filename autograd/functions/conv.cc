// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/conv.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "autograd/functions/shape.h"
#include "core/ops/reduce.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton::autograd {

Variable Conv2d(const Variable& given_x, const Variable& given_weight,
                const Variable& given_bias, const ops::Conv2dOptions& options) {
  const Variable x = Lowered(given_x), weight = Lowered(given_weight),
                 bias = Lowered(given_bias);
  return Record(
      "conv2d",
      ops::Conv2d(x.tensor(), weight.tensor(), bias.tensor(), options),
      {x.tensor(), weight.tensor()},
      // The weight comes first, so that its gradient, on the companion stream,
      // waits for nothing that follows.
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

Variable Conv1d(const Variable& x, const Variable& given_weight,
                const Variable& bias, const Conv1dOptions& options) {
  const Variable weight = Lowered(given_weight);  // casts of leaves are cached
  Require(x.shape().rank() == 3 && weight.shape().rank() == 3, "conv1d",
          "expected x [N, C, L] and weight [O, C/groups, k], got ",
          x.shape().ToString(), " and ", weight.shape().ToString());
  return Squeeze(Conv2d(Unsqueeze(x, 2), Unsqueeze(weight, 2), bias,
                        {.stride = {1, options.stride},
                         .padding = {0, options.padding},
                         .dilation = {1, options.dilation},
                         .groups = options.groups}),
                 2);
}

Variable ConvTranspose2d(const Variable& given_x, const Variable& given_weight,
                         const Variable& given_bias,
                         const ops::ConvTranspose2dOptions& options) {
  const Variable x = Lowered(given_x), weight = Lowered(given_weight),
                 bias = Lowered(given_bias);
  return Record(
      "conv_transpose2d",
      ops::ConvTranspose2d(x.tensor(), weight.tensor(), bias.tensor(), options),
      {x.tensor(), weight.tensor()},
      {{weight,
        [options](const Backprop& p) {
          const StreamScope beside(
              Stream::Beside(CurrentStream(p.dy().device())));
          return ops::ConvTranspose2dBackwardWeight(p.dy(), p.saved(0),
                                                    p.saved(1).shape(), options,
                                                    p.saved(1).SuggestFormat());
        }},
       {x,
        [options](const Backprop& p) {
          return ops::ConvTranspose2dBackwardInput(p.dy(), p.saved(1), options);
        }},
       {bias, [](const Backprop& p) {
          return ops::Sum(p.dy(), {0, 2, 3});
        }}});
}

}  // namespace baton::autograd

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/conv2d.h"

#include "autograd/functions/conv.h"

namespace baton::nn {

Conv2d::Conv2d(int64_t in, int64_t out, const Conv2dOptions& options,
               Generator& generator)
    : ConvModule({.op = "conv2d",
                  .rows = out,
                  .columns = in,
                  .groups = options.groups,
                  .kernel = {options.kernel[0], options.kernel[1]},
                  .bias = options.bias ? out : 0},
                 options.init, generator),
      options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {}

Variable Conv2d::Forward(const Variable& x) {
  return autograd::Conv2d(x, weight(), BiasOrNone(), options_);
}

}  // namespace baton::nn

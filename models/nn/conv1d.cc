// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/conv1d.h"

namespace baton::nn {

Conv1d::Conv1d(int64_t in, int64_t out, const Conv1dOptions& options,
               Generator& generator)
    : ConvModule({.op = "conv1d",
                  .rows = out,
                  .columns = in,
                  .groups = options.groups,
                  .kernel = {options.kernel},
                  .bias = options.bias ? out : 0},
                 options.init, generator),
      options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {}

Variable Conv1d::Forward(const Variable& x) {
  return autograd::Conv1d(x, weight(), BiasOrNone(), options_);
}

}  // namespace baton::nn

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/conv_transpose2d.h"

#include "autograd/functions/conv.h"

namespace baton::nn {

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out,
                                 const ConvTranspose2dOptions& options,
                                 Generator& generator)
    : ConvModule({.op = "conv_transpose2d",
                  .rows = in,
                  .columns = out,
                  .groups = options.groups,
                  .kernel = {options.kernel[0], options.kernel[1]},
                  .bias = options.bias ? out : 0},
                 ConvInit::kDefault, generator),
      options_{.stride = options.stride,
               .padding = options.padding,
               .output_padding = options.output_padding,
               .dilation = options.dilation,
               .groups = options.groups} {}

Variable ConvTranspose2d::Forward(const Variable& x) {
  return autograd::ConvTranspose2d(x, weight(), BiasOrNone(), options_);
}

}  // namespace baton::nn

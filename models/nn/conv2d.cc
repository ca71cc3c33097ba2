// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/conv2d.h"

#include "autograd/functions/conv.h"
#include "core/status.h"
#include "models/nn/init.h"

namespace baton::nn {
namespace {

Tensor EmptyWeight(int64_t in, int64_t out, const Conv2dOptions& options) {
  Require(in > 0 && out > 0 && options.groups > 0 && in % options.groups == 0 &&
              out % options.groups == 0,
          "conv2d", "channels ", in, " -> ", out, " cannot be in ",
          options.groups, " groups");
  return Tensor::Empty(
      {out, in / options.groups, options.kernel[0], options.kernel[1]});
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, const Conv2dOptions& options,
               Generator& generator)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups},
      weight_(RegisterParameter("weight", EmptyWeight(in, out, options))) {
  if (options.bias) bias_ = &RegisterParameter("bias", Tensor::Empty({out}));
  const Tensor bias = bias_ ? bias_->tensor() : Tensor();
  if (options.init == ConvInit::kKaimingFanOut) {
    KaimingNormal(weight_.tensor(), {.fan = Fan::kOut}, generator);
    if (bias.defined()) bias.Fill(0);
  } else {
    DefaultInit(weight_.tensor(), bias, generator);
  }
}

Variable Conv2d::Forward(const Variable& x) {
  return autograd::Conv2d(x, weight_, bias_ ? *bias_ : Variable(), options_);
}

}  // namespace baton::nn

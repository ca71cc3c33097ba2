// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/linear.h"

#include "autograd/functions/linear.h"
#include "core/status.h"
#include "models/nn/init.h"

namespace baton::nn {
namespace {

Tensor EmptyWeight(int64_t in, int64_t out) {
  Require(in > 0 && out > 0, "linear", "features must be positive, got ", in,
          " -> ", out);
  return Tensor::Empty({out, in});
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, Generator& generator,
               const LinearOptions& options)
    : weight_(RegisterParameter("weight", EmptyWeight(in, out))) {
  if (options.bias) bias_ = &RegisterParameter("bias", Tensor::Empty({out}));
  DefaultInit(weight_.tensor(), bias_ ? bias_->tensor() : Tensor(), generator);
}

Variable Linear::Forward(const Variable& x) {
  return autograd::Linear(x, weight_, bias_ ? *bias_ : Variable());
}

}  // namespace baton::nn

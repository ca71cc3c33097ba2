// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/activation.h"

#include "autograd/functions/activation.h"

namespace baton::nn {

Variable ReLU::Forward(const Variable& x) { return autograd::Relu(x); }
Variable Sigmoid::Forward(const Variable& x) { return autograd::Sigmoid(x); }
Variable Tanh::Forward(const Variable& x) { return autograd::Tanh(x); }
Variable GELU::Forward(const Variable& x) { return autograd::Gelu(x); }
Variable SiLU::Forward(const Variable& x) { return autograd::Silu(x); }

Variable LeakyReLU::Forward(const Variable& x) {
  return autograd::LeakyRelu(x, slope_);
}

}  // namespace baton::nn

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/pool.h"

#include "autograd/functions/pool.h"

namespace baton::nn {

Variable MaxPool2d::Forward(const Variable& x) {
  return autograd::MaxPool2d(x, options_);
}

Variable AvgPool2d::Forward(const Variable& x) {
  return autograd::AvgPool2d(x, options_);
}

Variable AdaptiveAvgPool2d::Forward(const Variable& x) {
  return autograd::AdaptiveAvgPool2d(x, height_, width_);
}

}  // namespace baton::nn

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/dropout.h"

#include "autograd/functions/activation.h"
#include "core/status.h"

namespace baton::nn {

Dropout::Dropout(double p, uint64_t seed)
    : p_(p), generator_(RegisterGenerator(seed)) {
  Require(p >= 0 && p < 1, "dropout", "p must be in [0, 1), got ", p);
}

Variable Dropout::Forward(const Variable& x) {
  if (!is_training() || p_ == 0) return x;
  return autograd::Dropout(x, p_, generator_);
}

}  // namespace baton::nn

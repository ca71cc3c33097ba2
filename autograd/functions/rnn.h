// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "autograd/variable.h"
#include "core/ops/rnn.h"

namespace baton::autograd {

struct RnnOutputs {
  Variable y, h, c;  // c is undefined for the GRU
};

// Shapes and formulas are those of core/ops/rnn.h; `h` and `c` may be
// undefined.
RnnOutputs Rnn(const Variable& x, const Variable& h, const Variable& c,
               const std::vector<Variable>& weights,
               const ops::RnnOptions& options);

}  // namespace baton::autograd

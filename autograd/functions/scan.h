// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// Returns cumulative sums along `axis`, each including its element.
Variable CumSum(const Variable& x, int axis);

}  // namespace baton::autograd

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// Computes softmax, or its logarithm, along `axis`.
Variable Softmax(const Variable& x, int axis);
Variable LogSoftmax(const Variable& x, int axis);

}  // namespace baton::autograd

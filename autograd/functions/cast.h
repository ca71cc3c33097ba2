// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// To another dtype; the gradient is cast back. Itself when it is that already.
Variable Cast(const Variable& x, DType dtype);

}  // namespace baton::autograd

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"

namespace baton::autograd {

// Casts x to another dtype; the gradient is cast back. Returns x itself if it
// has that dtype.
Variable Cast(const Variable& x, DType dtype);

}  // namespace baton::autograd

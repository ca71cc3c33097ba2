// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/device.h"

namespace baton::autograd {

// x on `device`, itself when it is there already; the gradient comes back to
// where x is.
Variable To(const Variable& x, Device device);

}  // namespace baton::autograd

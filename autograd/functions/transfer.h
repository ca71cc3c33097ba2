// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/device.h"

namespace baton::autograd {

// Returns x on `device`, or x itself if it is there already; the gradient is
// moved back to x's device.
Variable To(const Variable& x, Device device);

}  // namespace baton::autograd

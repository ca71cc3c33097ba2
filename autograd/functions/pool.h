// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "core/ops/pool.h"

// Pooling layers of images x [N, C, H, W].
namespace baton::autograd {

Variable MaxPool2d(const Variable& x, const ops::Pool2dOptions& options);
Variable AvgPool2d(const Variable& x, const ops::Pool2dOptions& options);
Variable AdaptiveAvgPool2d(const Variable& x, int64_t height, int64_t width);

}  // namespace baton::autograd

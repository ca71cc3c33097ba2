// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/functions/loss.h"

namespace baton::nn {

// The losses that every pipeline knows; the others are modules
// (models/nn/losses.h) and functions (autograd/functions/loss.h).
using autograd::CrossEntropy;
using autograd::MseLoss;

// Returns how many rows of logits [N, C] have their maximum at the label.
int64_t CountCorrect(const Tensor& logits, const Tensor& labels);

}  // namespace baton::nn

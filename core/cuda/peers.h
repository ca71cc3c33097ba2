// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cuda {

// Copies between tensors of one dtype, shape and dense order on two GPUs, on
// the copy stream of this direction, beside the work of their current streams.
void CopyBetween(const Tensor& target, const Tensor& source);

}  // namespace baton::cuda

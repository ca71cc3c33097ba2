// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::cpu {

// Writes the first elements, in order, of each line along the last axis of x,
// and their positions. All three tensors are dense and differ only in their
// last extent, which says how many elements are wanted. NaN is greater than all
// numbers; equal elements stay in their order.
void Sort(const Tensor& values, const Tensor& indices, const Tensor& x,
          bool descending);

}  // namespace baton::cpu

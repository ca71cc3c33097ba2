// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/gradient.h"
#include "core/tensor.h"

namespace baton::autograd {

// Computes sum += addend; an undefined tensor counts as zero. Reuses a tensor
// whose storage is not shared instead of making a new one, so call it with
// std::move if you can. Throws Error if shapes or dtypes differ.
void AccumulateInto(Tensor& sum, Tensor addend);
// Like the above. The sum of rows and rows is coalesced rows; any other sum is
// a tensor.
void AccumulateInto(Gradient& sum, Gradient addend);

// Like the above, for the gradients that several passes give to one leaf: sums
// of bf16 and f16 gradients are f32, since their own dtype would lose most of
// many small ones.
void AddGradient(Gradient& sum, Gradient addend);

// Returns the tensor itself if its elements fill their memory, and otherwise
// (for example if it is a broadcast view) a copy.
Tensor Dense(const Tensor& tensor);

// Returns true if the storage is not shared and every element has its own place
// in it, so that writing to `tensor` changes nothing else.
bool IsExclusive(const Tensor& tensor);

}  // namespace baton::autograd

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/gradient.h"
#include "core/tensor.h"

namespace baton::autograd {

// sum += addend, and an undefined side counts as zero. Takes over a tensor
// whose storage nobody else holds instead of making a new one, so call it with
// std::move where you can. Throws Error when shapes or dtypes differ.
void AccumulateInto(Tensor& sum, Tensor addend);
// Rows and rows are rows, coalesced; with a tensor among them, a tensor.
void AccumulateInto(Gradient& sum, Gradient addend);

// The same for what several passes give one leaf: sums of bf16 and f16
// gradients are f32, since their own type would lose most of many small ones.
void AddGradient(Gradient& sum, Gradient addend);

// Itself when its elements fill their memory; a copy of, say, a broadcast view.
Tensor Dense(const Tensor& tensor);

// True when nobody else holds the storage and every element has its own place
// in it, so that writing to `tensor` changes nothing else.
bool IsExclusive(const Tensor& tensor);

}  // namespace baton::autograd

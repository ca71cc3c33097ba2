// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Passes of batch norm over x [N, C, ...], f32 or f64, on the CPU. All tensors
// of x's size in a call are dense in one order, NormFormat(x). Per-channel
// tensors [C] are contiguous and have x's dtype; sums are f64 [2, C].
namespace baton::cpu {

MemoryFormat NormFormat(const Tensor& x);

// Returns the first element of each channel. Sums of differences from it lose
// no digits to a mean that is large compared to the deviation.
Tensor NormCenter(const Tensor& x);
// Returns the sums of x - center and of its square.
Tensor NormMoments(const Tensor& x, const Tensor& center);
// Returns x * scale + shift, plus `residual` if defined, through a ReLU if
// `relu`.
Tensor NormApply(const Tensor& x, const Tensor& residual, const Tensor& scale,
                 const Tensor& shift, bool relu);

// What the ReLU's mask is computed from: y > 0 if y is defined, otherwise x *
// scale + shift > 0. scale and shift are always defined.
struct NormMask {
  bool relu = false;
  Tensor y;
  Tensor scale;
  Tensor shift;
};
// Returns, with g = dy through the mask, the sums of g and of g * (x - center).
// Writes g to `g` if that is defined.
Tensor NormGradientSums(const Tensor& dy, const Tensor& x, const Tensor& center,
                        const NormMask& mask, const Tensor& g);
// Returns g * scale + x * slope + offset, with g = dy through the mask.
Tensor NormInputGradient(const Tensor& dy, const Tensor& x,
                         const NormMask& mask, const Tensor& slope,
                         const Tensor& offset);

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Passes of batch norm over x [N, C, ...] of f32 or f64 on the CPU. All big
// tensors of a call lie in the same dense order (NormFormat of x). Per-channel
// tensors [C] are contiguous and of x's dtype; sums are f64 [2, C].
namespace baton::cpu {

MemoryFormat NormFormat(const Tensor& x);

// Per channel, the first element: sums around it lose no digits to a mean that
// is large beside the deviation.
Tensor NormCenter(const Tensor& x);
// The sums of x - center and of its square.
Tensor NormMoments(const Tensor& x, const Tensor& center);
// x * scale + shift, plus `residual` where defined, through a ReLU.
Tensor NormApply(const Tensor& x, const Tensor& residual, const Tensor& scale,
                 const Tensor& shift, bool relu);

// What decides the ReLU's mask: y > 0 where y is defined, else
// x * scale + shift > 0. scale and shift are always defined.
struct NormMask {
  bool relu = false;
  Tensor y;
  Tensor scale;
  Tensor shift;
};
// With g = dy through the mask: the sums of g and of g * (x - center). Writes g
// where `g` is defined.
Tensor NormGradientSums(const Tensor& dy, const Tensor& x, const Tensor& center,
                        const NormMask& mask, const Tensor& g);
// g * scale + x * slope + offset.
Tensor NormInputGradient(const Tensor& dy, const Tensor& x,
                         const NormMask& mask, const Tensor& slope,
                         const Tensor& offset);

}  // namespace baton::cpu

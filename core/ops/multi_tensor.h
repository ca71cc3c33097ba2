// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// These ops take lists of floating tensors, such as all parameters of a model;
// a GPU runs some hundreds of them in one launch. Item i of one list belongs to
// item i of the other: both have one shape and one device, which may differ
// from item to item. These ops throw Error before they write anything, and
// increment the version of each target.
namespace baton::ops {

// Computes targets[i] += sources[i]. A source has the target's dtype, or is
// bf16 or f16 with a target of f32.
void AddIntoMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources);
// Computes targets[i] = sources[i], for any floating dtypes.
void CastMany(const std::vector<Tensor>& targets,
              const std::vector<Tensor>& sources);
// Returns copies in the same memory order, for any dtypes. The copy of an
// undefined tensor is undefined.
std::vector<Tensor> CloneMany(const std::vector<Tensor>& tensors);
// Computes targets[i] = sources[i] for pairs of equal dtype, floating or not,
// and equal memory order, all on one device. If `condition`, an f32 [] on that
// device, is defined and 0 when this runs, nothing is copied.
void CopyManyIf(const Tensor& condition, const std::vector<Tensor>& targets,
                const std::vector<Tensor>& sources);
// Computes targets[i] = sources[i] / scale from f32, bf16 or f16 into f32, and
// sets `not_finite`, if it is defined, to 1 if any source is infinite or NaN;
// otherwise it stays as it is. `scale` and `not_finite` are f32 [] on the
// device of all targets. A target may be its own source.
void UnscaleMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources, const Tensor& scale,
                 const Tensor& not_finite);
// Returns the sum of the squares of all elements, f64 [] on the one device of
// all tensors. The order of additions depends only on the sizes.
Tensor SquareSum(const std::vector<Tensor>& tensors);
void ZeroMany(const std::vector<Tensor>& targets);

}  // namespace baton::ops

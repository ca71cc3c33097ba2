// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// Ops on lists of floating tensors, as of all parameters of a model: on a GPU
// in one launch for some hundreds of them. Item i of one list belongs to item i
// of the other: equal shapes, one device; the device may differ from item to
// item. They throw Error before they write, and count a version of each target.
namespace baton::ops {

// targets[i] += sources[i], of the target's dtype or, into f32, bf16 or f16.
void AddIntoMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources);
// targets[i] = sources[i], of any floating dtypes.
void CastMany(const std::vector<Tensor>& targets,
              const std::vector<Tensor>& sources);
// Copies in the same memory order, of any dtypes; an undefined tensor's is
// undefined.
std::vector<Tensor> CloneMany(const std::vector<Tensor>& tensors);
// targets[i] = sources[i], of equal dtypes, whatever these are, and memory
// orders, on one device of all; unless `condition`, where defined, f32 []
// there, is 0 when it runs.
void CopyManyIf(const Tensor& condition, const std::vector<Tensor>& targets,
                const std::vector<Tensor>& sources);
// targets[i] = sources[i] / scale, of f32, bf16 or f16 into f32; `not_finite`,
// where defined, becomes 1 where any source is infinite or no number, and stays
// as it is otherwise. Both are f32 [] on the device of all targets. A target
// may be its source.
void UnscaleMany(const std::vector<Tensor>& targets,
                 const std::vector<Tensor>& sources, const Tensor& scale,
                 const Tensor& not_finite);
// The sum of the squares of all elements, f64 [] on the device of all, which is
// one. Added in an order that depends on the sizes alone.
Tensor SquareSum(const std::vector<Tensor>& tensors);
void ZeroMany(const std::vector<Tensor>& targets);

}  // namespace baton::ops

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"

// Functions that join samples into a batch. A sample is a list of tensors, such
// as an image and its label, and so is a batch. Thread-safe.
namespace baton::data {

using Tensors = std::vector<Tensor>;

// Joins one or more samples. It is called on loaders' threads.
using Collate =
    std::function<absl::StatusOr<Tensors>(const std::vector<Tensors>& samples)>;

// Tensor i of the batch stacks tensor i of all samples, [...] -> [N, ...].
// InvalidArgument names the first sample that differs from the first one in
// shapes or dtypes.
Collate Stacked();

// The same for sequences: tensors of rank 1 or more may differ in the length of
// their first axis; they are padded with `padding` to the longest, [T, ...] ->
// [N, longest T, ...]. The batch ends with a tensor i64 [N] of the lengths that
// the samples' first tensors had.
Collate Padded(double padding = 0);

// Stacks sequences [T, ...] of one dtype -> [N, longest T, ...]. Throws Error
// if other axes differ.
Tensor PadSequences(const Tensors& sequences, double padding = 0);

}  // namespace baton::data

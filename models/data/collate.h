// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"

// How samples become a batch. A sample is a list of tensors, such as an image
// and its label, and so is a batch. Thread-safe.
namespace baton::data {

using Tensors = std::vector<Tensor>;

// Joins samples, which are at least one. Called from loaders' threads.
using Collate =
    std::function<absl::StatusOr<Tensors>(const std::vector<Tensors>& samples)>;

// Batch tensor i stacks tensor i of all samples, [...] -> [N, ...].
// InvalidArgument names the first sample that differs from the first one in
// shapes or dtypes.
Collate Stacked();

// The same of sequences: tensors of a rank above 0 may differ in the length of
// their first axis, and get as long as the longest, [T, ...] -> [N, longest T,
// ...], filled up with `padding`. Behind them comes a tensor i64 [N] of the
// lengths that the first tensors had.
Collate Padded(double padding = 0);

// [T, ...] each, of one dtype -> [N, longest T, ...]. Throws Error where other
// axes differ.
Tensor PadSequences(const Tensors& sequences, double padding = 0);

}  // namespace baton::data

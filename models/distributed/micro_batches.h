// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/distributed/schedule.h"
#include "models/distributed/stage_routes.h"

namespace baton::dist {

// The rows of a batch that form one micro-batch: [begin, end).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Cuts `rows` into micro-batches of `split_size`; the last may be smaller.
// Both are at least 1.
std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size);
// Cuts `rows` into micro-batches of these sizes. Throws Error if `sizes` is
// empty, a size is less than 1, or the sizes do not add up to `rows`.
std::vector<RowRange> SplitRows(int64_t rows,
                                const std::vector<int64_t>& sizes);
// Cuts `rows` as a pipeline's options say: into micro-batches of `sizes` if
// there are any, else of `split_size`, or into a single one if that is 0.
std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size,
                                const std::vector<int64_t>& sizes);
// Cuts rows for an evaluation by the same options. The sizes need not add up:
// all micro-batches are as large as the largest size.
std::vector<RowRange> SplitEvaluated(int64_t rows, int64_t split_size,
                                     const std::vector<int64_t>& sizes);

// Concatenates the micro-batches' values along the rows. Each micro-batch has
// the same number of values.
Values Joined(const std::vector<Values>& micro_batches);

// Returns the rows of each group of `at_once` micro-batches, divided by the
// mean over the groups: how the costs of the groups differ.
std::vector<double> GroupSizes(const std::vector<RowRange>& micro_batches,
                               size_t at_once = 1);

// Expands a program of such groups: each instruction becomes the instructions
// of its micro-batches, one after the other. There are `count` micro-batches in
// all.
Program Ungrouped(const Program& groups, int at_once, int count);

}  // namespace baton::dist

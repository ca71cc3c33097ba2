// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/distributed/schedule.h"
#include "models/distributed/stage_routes.h"

namespace baton::dist {

// Rows of a batch that make up one micro-batch: [begin, end).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Cuts `rows` into micro-batches of `split_size`; the last may be smaller.
// Both are at least 1.
std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size);
// Into micro-batches of these sizes; throws Error unless there are any, each is
// at least 1 and they add up to `rows`.
std::vector<RowRange> SplitRows(int64_t rows,
                                const std::vector<int64_t>& sizes);
// As the options of a pipeline say: into micro-batches of `sizes`, if there are
// any, else of `split_size`, or into one where that is 0.
std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size,
                                const std::vector<int64_t>& sizes);
// By the same options, of rows to evaluate, for which sizes need not add up:
// into micro-batches as large as the largest.
std::vector<RowRange> SplitEvaluated(int64_t rows, int64_t split_size,
                                     const std::vector<int64_t>& sizes);

// Of what each micro-batch gave, as many values each, all rows of each value.
Values Joined(const std::vector<Values>& micro_batches);

// Rows of each group of `at_once` micro-batches, over the mean of the groups:
// how their costs differ.
std::vector<double> GroupSizes(const std::vector<RowRange>& micro_batches,
                               size_t at_once = 1);

// A program of such groups, of which each instruction is that of its `count`
// micro-batches in turn.
Program Ungrouped(const Program& groups, int at_once, int count);

}  // namespace baton::dist

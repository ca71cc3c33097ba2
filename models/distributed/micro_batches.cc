// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/micro_batches.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/ops/indexing.h"
#include "core/status.h"

namespace baton::dist {

std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size) {
  Require(rows > 0 && split_size > 0, "split",
          "expected at least one row and a split size of at least 1, got ",
          rows, " rows and split size ", split_size);
  std::vector<RowRange> parts;
  for (int64_t begin = 0; begin < rows; begin += split_size) {
    parts.push_back({begin, std::min(rows, begin + split_size)});
  }
  return parts;
}

std::vector<RowRange> SplitRows(int64_t rows,
                                const std::vector<int64_t>& sizes) {
  Require(!sizes.empty(), "split", "no micro-batches");
  std::vector<RowRange> parts;
  int64_t end = 0;
  for (int64_t size : sizes) {
    Require(size > 0 && size <= rows - end, "split", "micro-batches of ",
            absl::StrJoin(sizes, "+"), " rows do not add up to ", rows);
    parts.push_back({end, end + size});
    end += size;
  }
  Require(end == rows, "split", "micro-batches of ", absl::StrJoin(sizes, "+"),
          " rows do not add up to ", rows);
  return parts;
}

std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size,
                                const std::vector<int64_t>& sizes) {
  if (!sizes.empty()) return SplitRows(rows, sizes);
  return SplitRows(rows, split_size > 0 ? split_size : rows);
}

std::vector<RowRange> SplitEvaluated(int64_t rows, int64_t split_size,
                                     const std::vector<int64_t>& sizes) {
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  return SplitRows(rows, largest == sizes.end() ? split_size : *largest, {});
}

Values Joined(const std::vector<Values>& micro_batches) {
  Require(!micro_batches.empty(), "split", "no micro-batches");
  if (micro_batches.size() == 1) return micro_batches.front();
  Values joined;
  for (size_t i = 0; i < micro_batches.front().size(); ++i) {
    std::vector<Tensor> parts;
    for (const Values& values : micro_batches) parts.push_back(values.at(i));
    joined.push_back(ops::Cat(parts, 0));
  }
  return joined;
}

std::vector<double> GroupSizes(const std::vector<RowRange>& micro_batches,
                               size_t at_once) {
  std::vector<double> sizes;
  double rows = 0;
  for (size_t m = 0; m < micro_batches.size(); ++m) {
    if (m % at_once == 0) sizes.push_back(0);
    sizes.back() += static_cast<double>(micro_batches[m].size());
    rows += static_cast<double>(micro_batches[m].size());
  }
  const double mean = rows / static_cast<double>(sizes.size());
  for (double& size : sizes) size /= mean;
  return sizes;
}

Program Ungrouped(const Program& groups, int at_once, int count) {
  Program program;
  for (const auto& [op, stage, group] : groups) {
    const int end = std::min((group + 1) * at_once, count);
    for (int m = group * at_once; m < end; ++m)
      program.push_back({op, stage, m});
  }
  return program;
}

}  // namespace baton::dist

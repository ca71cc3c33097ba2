// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// Brings sources that may have the same cell into a fixed order, without a
// thread for each cell: entries (cell, source) are sorted by cell, stably.
namespace baton::cuda {

class SortedEntries {
 public:
  // Allocates memory for `count` entries with cells in [0, none]; entries of
  // the cell `none` go nowhere. Throws Error led by `op` above 2^31 - 1 entries
  // or 2^32 - 2 cells.
  SortedEntries(const char* op, int64_t count, int64_t none, Device device);

  // The caller writes these before Sort, entry by entry in order of sources.
  uint32_t* unsorted_cells() const { return Column<uint32_t>(0); }

  // Sorts on the thread's current stream.
  void Sort() const;

  int64_t count() const { return count_; }
  uint32_t none() const { return none_; }
  const uint32_t* cells() const { return Column<uint32_t>(1); }
  const int32_t* sources() const { return Column<int32_t>(3); }
  const Tensor& memory() const { return memory_; }

 private:
  template <typename T>
  T* Column(int64_t column) const {
    return static_cast<T*>(memory_.raw_data()) + column * count_;
  }

  const char* const op_;
  const int64_t count_;
  const uint32_t none_;
  const Tensor memory_;  // [4, count]: cells and sources, unsorted and sorted
};

}  // namespace baton::cuda

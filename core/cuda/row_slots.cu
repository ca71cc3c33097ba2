// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/indexing.h"
#include "core/cuda/launch.h"
#include "core/cuda/sorted_entries.cuh"

// Finds rows that occur several times: numbers are sorted, and the first of
// equal ones represents them. No size depends on how many there are, so the
// host need not wait for that number.
namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    NumbersKernel(uint32_t* cells, const int64_t* index, int64_t count,
                  uint32_t none) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    const int64_t number = index[i];
    cells[i] = number >= 0 && number < int64_t{none}
                   ? static_cast<uint32_t>(number)
                   : none;
  }
}

__global__ void __launch_bounds__(kThreads)
    SlotsKernel(int64_t* slots, int64_t* unique, const uint32_t* cells,
                const int32_t* sources, int64_t count, uint32_t none) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    const uint32_t cell = cells[i];
    int64_t first = 0;  // with this number
    for (int64_t high = i; first < high;) {
      const int64_t middle = (first + high) / 2;
      if (cells[middle] < cell) {
        first = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool valid = cell != none;
    slots[sources[i]] = valid ? first : -1;
    unique[i] = valid && first == i ? int64_t{cell} : -1;
  }
}

}  // namespace

int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t rows) {
  const int64_t count = index.numel();
  if (count == 0) return 0;
  constexpr char kOp[] = "coalesce";
  const SortedEntries entries(kOp, count, rows, index.device());
  {
    const Launch launch(kOp, {&entries.memory()}, {&index});
    NumbersKernel<<<launch.Blocks(count, kThreads), kThreads, 0,
                    launch.stream()>>>(
        entries.unsorted_cells(), static_cast<const int64_t*>(index.raw_data()),
        count, entries.none());
    launch.Check();
  }
  entries.Sort();
  const Launch launch(kOp, {&slots, &unique}, {&entries.memory()});
  SlotsKernel<<<launch.Blocks(count, kThreads), kThreads, 0, launch.stream()>>>(
      static_cast<int64_t*>(slots.raw_data()),
      static_cast<int64_t*>(unique.raw_data()), entries.cells(),
      entries.sources(), count, entries.none());
  launch.Check();
  return count;
}

}  // namespace baton::cuda

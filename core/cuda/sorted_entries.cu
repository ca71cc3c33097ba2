// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <limits>

#include "core/cuda/launch.h"
#include "core/cuda/sorted_entries.cuh"

namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    NumberKernel(int32_t* sources, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    sources[i] = static_cast<int32_t>(i);
  }
}

int64_t CheckedCount(const char* op, int64_t count, int64_t none) {
  Require(count <= std::numeric_limits<int32_t>::max() &&
              none < std::numeric_limits<uint32_t>::max(),
          op, count, " indices into ", none,
          " cells are more than a GPU sorts");
  return count;
}

}  // namespace

SortedEntries::SortedEntries(const char* op, int64_t count, int64_t none,
                             Device device)
    : op_(op),
      count_(CheckedCount(op, count, none)),
      none_(static_cast<uint32_t>(none)),
      memory_(Tensor::Empty({4, count},
                            {.dtype = DType::kI32, .device = device})) {}

void SortedEntries::Sort() const {
  const Launch launch(op_, {&memory_}, {});
  auto* numbers = Column<int32_t>(2);
  NumberKernel<<<launch.Blocks(count_, kThreads), kThreads, 0,
                 launch.stream()>>>(numbers, count_);
  launch.Check();
  const auto sort = [&](void* workspace, size_t& bytes) {
    launch.Check(cub::DeviceRadixSort::SortPairs(
        workspace, bytes, unsorted_cells(), Column<uint32_t>(1), numbers,
        Column<int32_t>(3), static_cast<int32_t>(count_), 0,
        std::max(1, static_cast<int>(std::bit_width(none_))), launch.stream()));
  };
  size_t bytes = 0;
  sort(nullptr, bytes);
  const Tensor workspace =
      Tensor::Empty({static_cast<int64_t>(bytes)},
                    {.dtype = DType::kU8, .device = memory_.device()});
  const Launch use(op_, {&workspace}, {});
  sort(workspace.raw_data(), bytes);
}

}  // namespace baton::cuda

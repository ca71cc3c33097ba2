// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/device_types.cuh"
#include "core/cuda/group_reduce.cuh"
#include "core/cuda/offsets.cuh"
#include "core/cuda/reduce.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "extremes";
constexpr int kThreads = kGroupThreads;

template <bool kMax, typename C>
__device__ __forceinline__ bool Beats(C candidate, C best) {
  const bool better = kMax ? candidate > best : candidate < best;
  return better || (candidate != candidate && best == best);
}

template <typename C>
struct Candidate {
  C value;
  int64_t position;  // -1 if none
};

// Returns the better of two elements; the first if they are equal.
template <bool kMax>
struct Better {
  template <typename C>
  __device__ __forceinline__ Candidate<C> operator()(
      const Candidate<C>& a, const Candidate<C>& b) const {
    if (a.position < 0) return b;
    if (b.position < 0) return a;
    if (Beats<kMax>(a.value, b.value)) return a;
    if (Beats<kMax>(b.value, a.value)) return b;
    return a.position < b.position ? a : b;
  }
};

template <typename T>
struct Lines {
  const T* x;
  T* values;
  int64_t* indices;
  Offsets<3> starts;  // of x, values and indices
  int64_t lines;
  int64_t size, stride;  // of a line
};

template <bool kMax, typename T>
__global__ void __launch_bounds__(kThreads)
    ExtremesKernel(const __grid_constant__ Lines<T> task, int group) {
  using C = Compute<T>;
  const int groups = kThreads / group;
  const int member = static_cast<int>(threadIdx.x) % group;
  for (int64_t first = int64_t{blockIdx.x} * groups; first < task.lines;
       first += int64_t{gridDim.x} * groups) {
    const int64_t line = first + threadIdx.x / group;
    const bool live = line < task.lines;
    int64_t at[3] = {0, 0, 0};
    Candidate<C> best = {C(), -1};
    if (live) {
      task.starts.At(line, at);
      const T* x = task.x + at[0];
#pragma unroll 4
      for (int64_t k = member; k < task.size; k += group) {
        const C value = As<C>(x[k * task.stride]);
        if (best.position < 0 || Beats<kMax>(value, best.value)) {
          best = {value, k};
        }
      }
    }
    best = CombineGroup(best, group, Better<kMax>{});
    if (live && member == 0) {
      task.values[at[1]] = task.x[at[0] + best.position * task.stride];
      task.indices[at[2]] = best.position;
    }
  }
}

// If adjacent lines begin next to each other, one thread for each line reads
// whole sectors; then several threads share a line only if there are few lines.
int GroupFor(const Launch& launch, const StridedLoop<3>& loop, int64_t size,
             int64_t stride) {
  const int by_size = GroupSize(launch, loop.numel, size);
  if (loop.inner_stride(0) != 1 || stride == 1) return by_size;
  const int64_t threads = int64_t{512} * launch.multiprocessors();
  const auto wanted = static_cast<uint64_t>(
      std::max<int64_t>(threads / std::max<int64_t>(loop.numel, 1), 1));
  const auto group =
      static_cast<int>(std::bit_floor(std::min<uint64_t>(wanted, 32)));
  return std::min(group, by_size);
}

}  // namespace

void FindExtremes(Extreme extreme, const Tensor& values, const Tensor& indices,
                  const Tensor& x, int axis) {
  if (values.numel() == 0) return;
  const Launch launch(kOp, {&values, &indices}, {&x});
  const int64_t size = x.dim(axis);
  const int64_t stride = x.strides()[static_cast<size_t>(axis)];
  const StridedLoop<3> loop(
      values.shape(), {&x.strides(), &values.strides(), &indices.strides()});
  const int group = GroupFor(launch, loop, size, stride);
  const int blocks = GroupBlocks(launch, loop.numel, group);
  VisitDeviceType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Lines<T> lines{.x = static_cast<const T*>(x.raw_data()),
                         .values = static_cast<T*>(values.raw_data()),
                         .indices = static_cast<int64_t*>(indices.raw_data()),
                         .starts = {kOp, loop},
                         .lines = loop.numel,
                         .size = size,
                         .stride = stride};
    if (extreme == Extreme::kMax) {
      ExtremesKernel<true>
          <<<blocks, kThreads, 0, launch.stream()>>>(lines, group);
    } else {
      ExtremesKernel<false>
          <<<blocks, kThreads, 0, launch.stream()>>>(lines, group);
    }
    launch.Check();
  });
}

}  // namespace baton::cuda

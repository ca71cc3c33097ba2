// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "core/cuda/batch_norm_plan.h"
#include "core/cuda/pack_access.cuh"

// The parts that all of batch norm's kernels share: which thread reads what,
// and sums over all threads.
namespace baton::cuda {

// A thread's rows of a layout, and its channels: V of them from channel() on,
// or the single one of its plane. Rows are counted from the end, because the
// previous kernel has just written the end of its result.
template <int V, bool kPlanes>
class NormWalk {
 public:
  __device__ explicit NormWalk(const NormLayout& layout)
      : rows_(layout.rows),
        channels_(layout.channels),
        plane_(layout.plane),
        group_(static_cast<int>(blockIdx.x) / layout.slabs),
        slab_(static_cast<int>(blockIdx.x) % layout.slabs) {
    const int thread = static_cast<int>(threadIdx.x);
    const int lanes = 1 << layout.lane_bits;
    const int depth = kNormThreads >> layout.lane_bits;
    width_ = kPlanes ? 1 : lanes * V;
    in_group_ = kPlanes ? 0 : (thread & (lanes - 1)) * V;
    first_ = slab_ * depth + (thread >> layout.lane_bits);
    step_ = layout.slabs * depth;
    const bool some = channel() < channels_ && first_ < rows_;
    steps_ = some ? (rows_ - 1 - first_) / step_ + 1 : 0;
  }

  __device__ int group() const { return group_; }
  __device__ int slab() const { return slab_; }
  __device__ int width() const { return width_; }
  __device__ int first_channel() const { return group_ * width_; }
  __device__ int channel() const { return first_channel() + in_group_; }
  __device__ int in_group() const { return in_group_; }
  __device__ int steps() const { return steps_; }
  // Returns the number of steps of the block's busiest thread.
  __device__ int block_steps() const { return (rows_ - 1) / step_ + 1; }

  // Returns the offset, in elements, of the pack of step k.
  __device__ int64_t Offset(int k) const {
    return OffsetOfRow(rows_ - 1 - (first_ + k * step_));
  }
  // Returns the offset when the same rows are walked from the start, which a
  // walk that follows another one does.
  __device__ int64_t OffsetFromStart(int k) const {
    return OffsetOfRow(first_ + k * step_);
  }
  // Returns the offset of the channel's first element in memory.
  __device__ int64_t OffsetOfChannel(int channel) const {
    return kPlanes ? int64_t{channel} * plane_ * V : channel;
  }

  // Loads the values of the thread's channels from an array over all channels.
  template <typename A>
  __device__ void TakeGlobal(const A* values, A (&to)[V]) const {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int at = kPlanes ? channel() : channel() + i;
      to[i] = values != nullptr && at < channels_ ? values[at] : A(0);
    }
  }
  // Loads the first element of each channel in x.
  template <typename T, typename A>
  __device__ void TakeFirst(const T* x, A (&to)[V]) const {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int at = kPlanes ? channel() : channel() + i;
      to[i] = at < channels_ ? As<A>(x[OffsetOfChannel(at)]) : A(0);
    }
  }
  // Loads the values of the thread's channels from an array over the group's
  // channels.
  template <typename A>
  __device__ void TakeShared(const A* values, A (&to)[V]) const {
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = values[kPlanes ? 0 : in_group_ + i];
  }

 private:
  __device__ int64_t OffsetOfRow(int row) const {
    if constexpr (kPlanes) {
      const int image = row / plane_;
      return ((int64_t{image} * channels_ + channel()) * plane_ +
              (row - image * plane_)) *
             V;
    } else {
      return int64_t{row} * channels_ + channel();
    }
  }

  int rows_, channels_, plane_, group_, slab_, width_, in_group_;
  int first_, step_, steps_;
};

// Calls use(load(k), k) for k in [begin, end), with kInFlight loads at a time.
template <int kInFlight, typename Load, typename Use>
__device__ __forceinline__ void ForSteps(int begin, int end, Load load,
                                         Use use) {
  using Loaded = decltype(load(0));
  int k = begin;
  for (; k + kInFlight <= end; k += kInFlight) {
    Loaded loaded[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) loaded[i] = load(k + i);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) use(loaded[i], k + i);
  }
  Loaded loaded[kInFlight];
#pragma unroll
  for (int i = 0; i < kInFlight - 1; ++i) {
    if (k + i < end) loaded[i] = load(k + i);
  }
#pragma unroll
  for (int i = 0; i < kInFlight - 1; ++i) {
    if (k + i < end) use(loaded[i], k + i);
  }
}

__device__ __forceinline__ void SyncCluster() {
  const auto cluster = cooperative_groups::this_cluster();
  if (cluster.num_blocks() > 1) {
    cluster.sync();
  } else {
    __syncthreads();
  }
}

// Adds up two sums for each channel over a block and its cluster, in shared
// memory.
template <typename A, int V, bool kPlanes, int kLanes>
struct NormTotals {
  static constexpr int kOwn = kPlanes ? 1 : V;  // channels for each thread
  static constexpr int kWidth = kPlanes ? 1 : V * kLanes;
  static constexpr int kWarps = kNormThreads / 32;

  A warps[kWarps][2 * kWidth];
  A block[2 * kWidth];  // the channels' first sums, then their second ones

  // All threads of the cluster must call it. OverCluster is valid from then on
  // until a block of the cluster ends.
  __device__ void Add(A (&sums)[2][V], int lane_bits) {
    const int lanes = 1 << lane_bits;
    const int width = lanes * kOwn;
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = kOwn; i < V; ++i) {
      sums[0][0] += sums[0][i];
      sums[1][0] += sums[1][i];
    }
    for (int distance = 16; distance >= lanes; distance /= 2) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        sums[0][i] += __shfl_xor_sync(~0u, sums[0][i], distance);
        sums[1][i] += __shfl_xor_sync(~0u, sums[1][i], distance);
      }
    }
    if (thread % 32 < lanes) {
      A* own = warps[thread / 32] + thread % 32 * kOwn;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        own[i] = sums[0][i];
        own[width + i] = sums[1][i];
      }
    }
    __syncthreads();
    if (thread < 2 * width) {
      A total = warps[0][thread];
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) total += warps[warp][thread];
      block[thread] = total;
    }
    SyncCluster();
  }
  __device__ A OverCluster(int i) {
    const auto cluster = cooperative_groups::this_cluster();
    const auto blocks = static_cast<int>(cluster.num_blocks());
    A total = A(0);
    for (int rank = 0; rank < blocks; ++rank)
      total += *cluster.map_shared_rank(&block[i], rank);
    return total;
  }
};

// Sums over slabs: [group][slab / cluster][2][width], as SumGrid defines them.
template <typename A>
struct NormPartials {
  A* data;
  int count;  // in each group

  // Each block of a kernel that computes sums calls this at its end.
  template <typename Totals>
  __device__ void Write(Totals& totals, int width) const {
    const auto cluster = cooperative_groups::this_cluster();
    const int thread = static_cast<int>(threadIdx.x);
    if (cluster.block_rank() == 0 && thread < 2 * width) {
      const auto at = blockIdx.x / cluster.num_blocks();
      data[int64_t{at} * 2 * width + thread] = totals.OverCluster(thread);
    }
    SyncCluster();  // no block ends while another reads its sums
  }
  __device__ void Read(int group, int width, int in_group, A& first,
                       A& second) const {
    const A* own = data + int64_t{group} * count * 2 * width + in_group;
    first = second = A(0);
#pragma unroll 8
    for (int i = 0; i < count; ++i, own += 2 * width) {
      first += own[0];
      second += own[width];
    }
  }
};

}  // namespace baton::cuda

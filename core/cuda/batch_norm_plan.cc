// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm_plan.h"

#include <algorithm>
#include <bit>

namespace baton::cuda {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 30;
// The part of a block's shared memory that keeps packs; sums and coefficients
// take the rest.
constexpr int64_t kKeptBytes = 208 * 1024;
// The most bytes of x for which a block owns channels. It reads once more what
// it cannot keep, mostly from the L2 cache. With few blocks, the bandwidth of
// one multiprocessor is the limit, so that two kernels are faster from a
// smaller size on.
constexpr int64_t kOwnedBytes = 240 * 1024;
constexpr int64_t kOwnedBytesOfFew = 128 * 1024;

int CeilDiv(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

bool Aligned(const Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.raw_data()) % 16 == 0;
}

// Returns the groups of channels for up to `lanes` lanes.
NormGrid GroupsOf(const NormView& view, int lanes) {
  NormGrid grid = {.layout = {.channels = view.channels,
                              .rows = view.rows,
                              .plane = view.plane,
                              .lane_bits = 0,
                              .slabs = 1},
                   .groups = view.channels,
                   .width = 1};
  if (view.planes) return grid;
  const int packs = view.channels / view.pack;
  lanes = std::min(lanes, static_cast<int>(std::bit_ceil(
                              static_cast<unsigned>(std::max(packs, 1)))));
  grid.layout.lane_bits = std::countr_zero(static_cast<unsigned>(lanes));
  grid.groups = CeilDiv(packs, lanes);
  grid.width = lanes * view.pack;
  return grid;
}

// Returns the number of rows that a block's threads cover at once. Tiles
// returns how often they must do so.
int Depth(const NormGrid& grid) {
  return kNormThreads >> grid.layout.lane_bits;
}
int Tiles(const NormGrid& grid) {
  return CeilDiv(grid.layout.rows, Depth(grid));
}

int SlabsFor(const NormGrid& grid, int blocks) {
  return std::clamp(blocks / std::max(grid.groups, 1), 1,
                    std::max(Tiles(grid), 1));
}

}  // namespace

MemoryFormat NormFormat(const Tensor& x) {
  return x.rank() == 4 ? x.SuggestFormat() : MemoryFormat::kContiguous;
}

NormView::NormView(const char* op, const Tensor& x,
                   std::initializer_list<const Tensor*> others) {
  const int64_t outer = x.dim(0), inner = [&] {
    int64_t product = 1;
    for (int axis = 2; axis < x.rank(); ++axis) product *= x.dim(axis);
    return product;
  }();
  planes = NormFormat(x) == MemoryFormat::kContiguous && inner != 1;
  const auto size = static_cast<int>(SizeOf(x.dtype()));
  pack = 16 / size;
  bool aligned = Aligned(x) && (planes ? inner : x.dim(1)) % pack == 0;
  for (const Tensor* other : others) {
    aligned = aligned && (!other->defined() || Aligned(*other));
  }
  if (!aligned) pack = 1;
  pack_size = pack * size;
  Require(outer * inner < kMostRows && x.dim(1) < kMostRows, op,
          "expected x with less than 2^30 channels, and as many values in "
          "each, got ",
          x.shape().ToString());
  channels = static_cast<int>(x.dim(1));
  plane = static_cast<int>(planes ? inner / pack : 1);
  rows = static_cast<int>(planes ? outer * plane : outer * inner);
}

NormGrid SumGrid(const NormView& view, int blocks) {
  NormGrid grid = GroupsOf(view, StreamLanes(view.pack));
  const int slabs = SlabsFor(grid, blocks);
  while (grid.cluster < kNormCluster && slabs > kNormPartials * grid.cluster)
    grid.cluster *= 2;
  grid.layout.slabs = std::min(slabs, kNormPartials * grid.cluster) /
                      grid.cluster * grid.cluster;
  return grid;
}

NormGrid PassGrid(const NormView& view, const NormGrid& sums, int blocks) {
  NormGrid grid = GroupsOf(view, 1 << sums.layout.lane_bits);
  grid.layout.slabs = SlabsFor(grid, blocks);
  return grid;
}

std::optional<NormGrid> OwnerGrid(const NormView& view, int blocks,
                                  int tensors) {
  NormGrid grid = GroupsOf(view, OwnerLanes(view.pack));
  grid.cluster = static_cast<int>(std::bit_floor(
      static_cast<unsigned>(std::min(SlabsFor(grid, blocks), kNormCluster))));
  grid.layout.slabs = grid.cluster;
  const int steps = CeilDiv(Tiles(grid), grid.cluster);
  const int64_t step_bytes = int64_t{kNormThreads} * view.pack_size * tensors;
  const bool few = grid.blocks() < blocks * 3 / 4;
  if (steps * step_bytes > (few ? kOwnedBytesOfFew : kOwnedBytes)) return {};
  grid.kept = std::min(steps, static_cast<int>(kKeptBytes / step_bytes));
  grid.kept_bytes = static_cast<size_t>(grid.kept * step_bytes);
  return grid;
}

}  // namespace baton::cuda

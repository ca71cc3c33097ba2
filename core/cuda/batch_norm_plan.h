// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "core/tensor.h"

// How batch norm's kernels lie over x [N, C, ...]. All big tensors of a call
// are dense in one order, and move in packs of up to 16 bytes. Where channels
// are innermost, a pack is of neighbouring channels and a row is a pixel.
// Otherwise a pack is of neighbouring pixels of one channel, and the rows of a
// channel are the packs of its planes.
namespace baton::cuda {

inline constexpr int kNormThreads = 512;
inline constexpr int kNormCluster = 8;    // most blocks of a cluster
inline constexpr int kNormPartials = 16;  // most sums of slabs a channel

// Threads side by side along the channels, for packs and for single elements:
// 256 bytes of a row in the kernels that stream, 64 in those that own channels.
constexpr int StreamLanes(int pack) { return pack > 1 ? 16 : 32; }
constexpr int OwnerLanes(int pack) { return pack > 1 ? 4 : 16; }

MemoryFormat NormFormat(const Tensor& x);

struct NormView {
  // `others`: undefined, or like x. `x` is dense in NormFormat(x).
  NormView(const char* op, const Tensor& x,
           std::initializer_list<const Tensor*> others);
  bool planes;
  int pack;       // elements
  int pack_size;  // bytes
  int channels;
  int rows;
  int plane;  // rows of a plane
};

// What kernels see of it. Block b belongs to group b / slabs of channels.
struct NormLayout {
  int channels, rows, plane;
  int lane_bits;  // log2 of the threads side by side along the channels
  int slabs;      // blocks that share the rows of a group
};

struct NormGrid {
  NormLayout layout;
  int groups;
  int width;        // channels of a group
  int cluster = 1;  // divides layout.slabs
  int kept = 0;     // steps whose packs stay in shared memory
  size_t kept_bytes = 0;
  int blocks() const { return groups * layout.slabs; }
  int partials() const { return layout.slabs / cluster; }
};

// About `blocks` blocks that sum slabs.
NormGrid SumGrid(const NormView& view, int blocks);
// About `blocks` blocks over the groups of `sums`.
NormGrid PassGrid(const NormView& view, const NormGrid& sums, int blocks);
// Clusters that own their groups of channels and keep packs of `tensors`
// tensors; nothing where two kernels should be faster. `blocks`: as many as run
// at once, one a multiprocessor.
std::optional<NormGrid> OwnerGrid(const NormView& view, int blocks,
                                  int tensors);

}  // namespace baton::cuda

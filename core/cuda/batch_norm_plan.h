// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "core/tensor.h"

// This says how batch norm's kernels walk x [N, C, ...]. All tensors of x's
// size in a call are dense in one order, and are read in packs of up to 16
// bytes. If channels are innermost, a pack holds adjacent channels and a row is
// a pixel. Otherwise a pack holds adjacent pixels of one channel, and the rows
// of a channel are the packs of its planes.
namespace baton::cuda {

inline constexpr int kNormThreads = 512;
inline constexpr int kNormCluster = 8;    // most blocks in a cluster
inline constexpr int kNormPartials = 16;  // most slab sums for a channel

// The number of threads side by side along the channels, for packs and for
// single elements: 256 bytes of a row in the kernels that stream, 64 in those
// that own channels.
constexpr int StreamLanes(int pack) { return pack > 1 ? 16 : 32; }
constexpr int OwnerLanes(int pack) { return pack > 1 ? 4 : 16; }

MemoryFormat NormFormat(const Tensor& x);

struct NormView {
  // `others` are undefined or like x. `x` is dense in NormFormat(x).
  NormView(const char* op, const Tensor& x,
           std::initializer_list<const Tensor*> others);
  bool planes;
  int pack;       // elements
  int pack_size;  // bytes
  int channels;
  int rows;
  int plane;  // rows of a plane
};

// The part of it that kernels see. Block b belongs to group b / slabs of
// channels.
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

// Returns a grid of about `blocks` blocks that sum slabs.
NormGrid SumGrid(const NormView& view, int blocks);
// Returns a grid of about `blocks` blocks over the groups of `sums`.
NormGrid PassGrid(const NormView& view, const NormGrid& sums, int blocks);
// Returns a grid of clusters that own their groups of channels and keep packs
// of `tensors` tensors, or nullopt if two kernels should be faster. `blocks` is
// the number that run at once, one on each multiprocessor.
std::optional<NormGrid> OwnerGrid(const NormView& view, int blocks,
                                  int tensors);

}  // namespace baton::cuda

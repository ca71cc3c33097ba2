// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/cuda/launch.h"
#include "core/cuda/pack_access.cuh"
#include "core/ops/kernel_args.h"

// Pooling's kernels treat tensors as [images, height, width, packs]. A pack
// holds adjacent channels; in NCHW order there are N * C images with packs of
// one element.
namespace baton::cuda {

inline constexpr int kPoolThreads = 256;

struct PoolShape {
  PoolShape(const Shape& shape, MemoryFormat format, int pack_size)
      : images(shape[0]),
        height(static_cast<int>(shape[2])),
        width(static_cast<int>(shape[3])),
        packs(static_cast<int>(shape[1] / pack_size)),
        pack(pack_size) {
    if (format == MemoryFormat::kChannelsLast) return;
    images *= shape[1];
    packs = 1;
  }
  __host__ __device__ int64_t lines() const { return images * height; }
  int64_t image() const { return int64_t{height} * width * packs * pack; }
  // These return the offset, in elements, of an image, and of a pack in it.
  __device__ __forceinline__ int64_t Image(int64_t image) const {
    return image * (int64_t{height} * width * packs * pack);
  }
  __device__ __forceinline__ int InImage(int row, int column, int at) const {
    return ((row * width + column) * packs + at) * pack;
  }

  int64_t images;
  int height, width, packs, pack;
};

// Blocks of kPoolThreads over the lines of `shape`; if lines are short, a block
// has several whole lines.
struct PoolGrid {
  // `other` is the shape of the other tensor that the kernel accesses.
  PoolGrid(const char* op, const PoolShape& shape, const PoolShape& other) {
    const auto line = static_cast<unsigned>(std::clamp(
        int64_t{shape.width} * shape.packs, int64_t{1}, int64_t{kPoolThreads}));
    threads.x = std::bit_ceil(line);
    threads.y = kPoolThreads / threads.x;
    const int64_t count = (shape.lines() + threads.y - 1) / threads.y;
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    Require(
        shape.lines() < kMost && shape.image() < kMost && other.image() < kMost,
        op,
        "expected less than 2^31 lines of pixels, and elements of an "
        "image, got ",
        shape.lines(), ", ", shape.image(), " and ", other.image());
    blocks.x = static_cast<unsigned>(count);
  }
  dim3 blocks{1}, threads{1};
};

// Calls body(image, row, column, pack) for the work of one thread of a
// PoolGrid.
template <typename Body>
__device__ __forceinline__ void ForEachPack(const PoolShape& shape,
                                            const Body& body) {
  const unsigned line = blockIdx.x * blockDim.y + threadIdx.y;
  if (line >= shape.lines()) return;
  const unsigned image = line / static_cast<unsigned>(shape.height);
  const auto row = static_cast<int>(line - image * shape.height);
  const auto packs = static_cast<unsigned>(shape.packs);
  const unsigned count = packs * shape.width;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    const unsigned column = i / packs;
    body(int64_t{image}, row, static_cast<int>(column),
         static_cast<int>(i - column * packs));
  }
}

// Converts pooling's sizes to int, after checking that their products are
// small.
inline WindowAxis<int> Narrowed(const char* op, const WindowAxis<int64_t>& w) {
  Require((w.size + 1) * (w.cells + 1) < std::numeric_limits<int>::max() &&
              w.kernel < (1 << 30) && w.stride < (1 << 30),
          op, "expected smaller images than ", w.size, " pooled to ", w.cells);
  const auto narrow = [](int64_t x) { return static_cast<int>(x); };
  return {.size = narrow(w.size),
          .cells = narrow(w.cells),
          .kernel = narrow(w.kernel),
          .stride = narrow(w.stride),
          .padding = narrow(w.padding)};
}

// Returns the number of elements in a pack for dense tensors in one order.
inline int PoolPack(const Shape& shape, DType dtype, MemoryFormat format,
                    std::initializer_list<const Tensor*> tensors) {
  const int pack = 16 / static_cast<int>(SizeOf(dtype));
  if (format != MemoryFormat::kChannelsLast || shape[1] % pack != 0) return 1;
  for (const Tensor* tensor : tensors) {
    if (!IsAligned(tensor->raw_data())) return 1;
  }
  return pack;
}

// Calls fn(std::type_identity<T>, V); V is an integral constant.
template <typename Fn>
void VisitPool(const char* op, DType dtype, int pack, Fn&& fn) {
  VisitDeviceFloating(op, dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (pack == 1) {
      fn(type, std::integral_constant<int, 1>());
    } else {
      fn(type, std::integral_constant<int, kPackSize<T>>());
    }
  });
}

template <typename T>
T* PoolData(const Tensor& tensor) {
  return static_cast<T*>(tensor.raw_data());
}

}  // namespace baton::cuda

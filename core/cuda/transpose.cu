// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/bits.cuh"
#include "core/cuda/convert.cuh"
#include "core/cuda/copy.h"
#include "core/cuda/launch.h"
#include "core/cuda/loop.cuh"

// Copies between NCHW and NHWC, and copies transposed matrices. Tiles go
// through shared memory, so that both sides are accessed in whole rows.
namespace baton::cuda {
namespace {

using Loop = StridedLoop<2>;

constexpr int kLanes = 32;
constexpr int kWarps = 8;

// The number of elements along a tile's side: small elements need more of them
// in flight.
template <typename T>
inline constexpr int kSide = sizeof(T) <= 2 ? 64 : 32;

// Planes of `rows` x `columns` elements. Columns are dense in the target, rows
// in the source.
struct Planes {
  uint32_t tiles;
  Divider tiles_in_row, tiles_in_column;
  uint32_t rows, columns;
  int64_t to_stride, from_stride;  // of a row of the target, of the source
  int rank;                        // of the dims of planes
  Divider sizes[kMaxDims];
  int64_t to_strides[kMaxDims], from_strides[kMaxDims];
};

struct Tile {
  uint32_t row, column;
  int64_t to, from;  // where the plane begins
};

template <int kTile>
__device__ Tile TileAt(const Planes& planes, uint32_t number) {
  const uint32_t line = planes.tiles_in_row.Quotient(number);
  uint32_t plane = planes.tiles_in_column.Quotient(line);
  Tile tile{(line - plane * planes.tiles_in_column.divisor) * kTile,
            (number - line * planes.tiles_in_row.divisor) * kTile, 0, 0};
#pragma unroll
  for (int d = 0; d < kMaxDims; ++d) {
    if (d >= planes.rank) break;
    const uint32_t rest = planes.sizes[d].Quotient(plane);
    const int64_t at = plane - rest * planes.sizes[d].divisor;
    tile.to += at * planes.to_strides[d];
    tile.from += at * planes.from_strides[d];
    plane = rest;
  }
  return tile;
}

template <typename To, typename From>
__global__ void __launch_bounds__(kLanes* kWarps)
    TransposeKernel(const __grid_constant__ Planes planes, To* to,
                    const From* from) {
  constexpr int kTile = kSide<From>;
  constexpr int kLines = kTile / kWarps;    // of a tile, for a warp
  constexpr int kColumns = kTile / kLanes;  // of a line, for a lane
  // The padding puts the elements of a column into different banks.
  constexpr int kPadding = sizeof(From) < 4 ? 4 / sizeof(From) : 1;
  __shared__ From shared[kTile][kTile + kPadding];
  const uint32_t lane = threadIdx.x % kLanes;
  const uint32_t warp = threadIdx.x / kLanes;
  for (uint32_t number = blockIdx.x; number < planes.tiles;
       number += gridDim.x) {
    const Tile tile = TileAt<kTile>(planes, number);
    From values[kLines][kColumns];
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const uint32_t column = tile.column + warp + i * kWarps;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const uint32_t row = tile.row + lane + j * kLanes;
        if (column < planes.columns && row < planes.rows) {
          values[i][j] = from[tile.from + column * planes.from_stride + row];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        shared[warp + i * kWarps][lane + j * kLanes] = values[i][j];
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const uint32_t row = tile.row + warp + i * kWarps;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const uint32_t column = tile.column + lane + j * kLanes;
        if (column < planes.columns && row < planes.rows) {
          to[tile.to + row * planes.to_stride + column] =
              ConvertTo<To>(shared[lane + j * kLanes][warp + i * kWarps]);
        }
      }
    }
    __syncthreads();
  }
}

// Returns the dim, other than the innermost one, in which the source is dense,
// or -1.
int DenseSourceDim(const Loop& loop) {
  if (loop.inner_stride(0) != 1 || loop.inner_stride(1) <= 1) return -1;
  for (int d = static_cast<int>(loop.sizes.size()) - 2; d >= 0; --d) {
    if (loop.strides[1][static_cast<size_t>(d)] == 1) return d;
  }
  return -1;
}

Planes PlanesOf(const Loop& loop, int row_dim, int tile) {
  const auto divider = [](int64_t n) {
    return Divider(static_cast<uint32_t>(n));
  };
  const auto row = static_cast<size_t>(row_dim);
  const int64_t rows = loop.sizes[row];
  const int64_t columns = loop.inner_size();
  Planes planes{};
  planes.rows = static_cast<uint32_t>(rows);
  planes.columns = static_cast<uint32_t>(columns);
  planes.to_stride = loop.strides[0][row];
  planes.from_stride = loop.inner_stride(1);
  planes.tiles_in_row = divider((columns + tile - 1) / tile);
  planes.tiles_in_column = divider((rows + tile - 1) / tile);
  int64_t count = 1;
  for (size_t d = loop.sizes.size() - 1; d-- > 0;) {
    if (d == row) continue;
    const int at = planes.rank++;
    planes.sizes[at] = divider(loop.sizes[d]);
    planes.to_strides[at] = loop.strides[0][d];
    planes.from_strides[at] = loop.strides[1][d];
    count *= loop.sizes[d];
  }
  planes.tiles = static_cast<uint32_t>(count * planes.tiles_in_row.divisor *
                                       planes.tiles_in_column.divisor);
  return planes;
}

template <typename To, typename From>
void Transpose(const Launch& launch, const Loop& loop, int row_dim,
               const Tensor& target, const Tensor& source) {
  const Planes planes = PlanesOf(loop, row_dim, kSide<From>);
  TransposeKernel<<<launch.Blocks(planes.tiles, 1), kLanes * kWarps, 0,
                    launch.stream()>>>(
      planes, static_cast<To*>(target.raw_data()),
      static_cast<const From*>(source.raw_data()));
  launch.Check();
}

// Visits the casts of images to a half dtype, and back.
template <typename Fn>
void VisitCast(DType to, DType from, Fn&& fn) {
  const auto visit = [&](auto t, auto f) { fn(t, f); };
  using std::type_identity;
  if (to == DType::kBF16) {
    visit(type_identity<__nv_bfloat16>{}, type_identity<float>{});
  } else if (to == DType::kF16) {
    visit(type_identity<__half>{}, type_identity<float>{});
  } else if (from == DType::kBF16) {
    visit(type_identity<float>{}, type_identity<__nv_bfloat16>{});
  } else {
    visit(type_identity<float>{}, type_identity<__half>{});
  }
}

bool IsSmallFloat(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

bool CastsOnTheWay(DType to, DType from) {
  return (to == DType::kF32 && IsSmallFloat(from)) ||
         (from == DType::kF32 && IsSmallFloat(to));
}

}  // namespace

bool CopyTransposed(const Launch& launch, const Tensor& target,
                    const Tensor& source) {
  // In narrower planes most of a tile would be empty.
  constexpr int64_t kLeast = 8;
  const bool same = target.dtype() == source.dtype();
  if (!same && !CastsOnTheWay(target.dtype(), source.dtype())) return false;
  const Loop loop(target.shape(), {&target.strides(), &source.strides()});
  const int row_dim = DenseSourceDim(loop);
  if (row_dim < 0 || loop.numel > kMaxElements ||
      loop.sizes.size() > kMaxDims || loop.inner_size() < kLeast ||
      loop.sizes[static_cast<size_t>(row_dim)] < kLeast) {
    return false;
  }
  if (same) {
    VisitBits(target.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      Transpose<T, T>(launch, loop, row_dim, target, source);
    });
  } else {
    VisitCast(target.dtype(), source.dtype(), [&](auto to, auto from) {
      Transpose<typename decltype(to)::type, typename decltype(from)::type>(
          launch, loop, row_dim, target, source);
    });
  }
  return true;
}

}  // namespace baton::cuda

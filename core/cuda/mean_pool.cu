// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/pool.h"
#include "core/cuda/pool_grid.cuh"

namespace baton::cuda {
namespace {

struct MeanPoolArgs {
  PoolShape in, out;
  WindowAxis<int> rows, columns;
  int divisor;  // 0: the window's size

  template <typename A>
  __device__ __forceinline__ A Factor(int row, int column) const {
    const int own = (rows.End(row) - rows.Start(row)) *
                    (columns.End(column) - columns.Start(column));
    return A(1) / static_cast<A>(divisor > 0 ? divisor : own);
  }
};

template <typename T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    MeanPoolKernel(const T* x, T* y, MeanPoolArgs args) {
  using A = Compute<T>;
  constexpr int kInFlight = 4;
  ForEachPack(args.out, [&](int64_t image, int row, int column, int at) {
    const int bottom = args.rows.End(row), right = args.columns.End(column);
    const T* const from = x + args.in.Image(image);
    A sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int h = args.rows.Start(row); h < bottom; ++h) {
      for (int w = args.columns.Start(column); w < right; w += kInFlight) {
        Packed<T, V> packs[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (w + j < right)
            packs[j] = ReadPack<V>(from + args.in.InImage(h, w + j, at));
        }
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (w + j >= right) break;
          A value[V];
          Unpack(packs[j], value);
#pragma unroll
          for (int i = 0; i < V; ++i) sum[i] += value[i];
        }
      }
    }
    const A factor = args.Factor<A>(row, column);
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] *= factor;
    WritePack(y + args.out.Image(image) + args.out.InImage(row, column, at),
              Rounded<T>(sum));
  });
}

template <typename T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    MeanPoolBackwardKernel(const T* dy, T* dx, MeanPoolArgs args) {
  using A = Compute<T>;
  ForEachPack(args.in, [&](int64_t image, int h, int w, int at) {
    const int bottom = args.rows.EndCell(h), right = args.columns.EndCell(w);
    const T* const from = dy + args.out.Image(image);
    A sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int row = args.rows.FirstCell(h); row < bottom; ++row) {
      for (int c = args.columns.FirstCell(w); c < right; ++c) {
        A value[V];
        Unpack(ReadPack<V>(from + args.out.InImage(row, c, at)), value);
        const A factor = args.Factor<A>(row, c);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += value[i] * factor;
      }
    }
    WritePack(dx + args.in.Image(image) + args.in.InImage(h, w, at),
              Rounded<T>(sum));
  });
}

constexpr int kMeanLanes = 32;
constexpr int kMeanDepth = kPoolThreads / kMeanLanes;

// Computes means over whole images. A block processes kMeanLanes adjacent packs
// of one image; its rows of threads share the pixels. Planes have packs of one
// element: each row of threads processes one plane, whose pixels its lanes
// share.
template <typename T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    ImageMeanKernel(const T* x, T* y, int pixels, int packs, int groups) {
  using A = Compute<T>;
  __shared__ A sums[kMeanDepth][kMeanLanes][V];
  const int lane = static_cast<int>(threadIdx.x % kMeanLanes);
  const int depth = static_cast<int>(threadIdx.x / kMeanLanes);
  const unsigned image = blockIdx.x / static_cast<unsigned>(groups);
  const int at =
      static_cast<int>(blockIdx.x - image * groups) * kMeanLanes + lane;
  A sum[V];
#pragma unroll
  for (int i = 0; i < V; ++i) sum[i] = A(0);
  if (at < packs) {
    const T* from = x + (int64_t{image} * pixels * packs + at) * V;
#pragma unroll 4
    for (int p = depth; p < pixels; p += kMeanDepth) {
      A value[V];
      Unpack(ReadPack<V>(from + int64_t{p} * packs * V), value);
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] += value[i];
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) sums[depth][lane][i] = sum[i];
  __syncthreads();
  if (depth > 0 || at >= packs) return;
  const A factor = A(1) / static_cast<A>(pixels);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    for (int d = 1; d < kMeanDepth; ++d) sum[i] += sums[d][lane][i];
    sum[i] *= factor;
  }
  WritePack(y + (int64_t{image} * packs + at) * V, Rounded<T>(sum));
}

template <typename T>
__global__ void __launch_bounds__(kPoolThreads)
    PlaneMeanKernel(const T* x, T* y, int pixels, int64_t planes) {
  using A = Compute<T>;
  const int lane = static_cast<int>(threadIdx.x % kMeanLanes);
  const int64_t plane =
      int64_t{blockIdx.x} * kMeanDepth + threadIdx.x / kMeanLanes;
  if (plane >= planes) return;
  A sum = A(0);
#pragma unroll 4
  for (int p = lane; p < pixels; p += kMeanLanes)
    sum += As<A>(x[plane * pixels + p]);
#pragma unroll
  for (int distance = kMeanLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, distance);
  if (lane == 0) y[plane] = As<T>(sum * (A(1) / static_cast<A>(pixels)));
}

MeanPoolArgs ArgsOf(const char* op, const Shape& x, const Shape& y,
                    MemoryFormat format, int pack, const Windows& windows) {
  return {.in = PoolShape(x, format, pack),
          .out = PoolShape(y, format, pack),
          .rows = Narrowed(op, windows.rows),
          .columns = Narrowed(op, windows.columns),
          .divisor = static_cast<int>(windows.divisor)};
}

bool IsWholeImage(const Windows& windows) {
  return windows.rows.kernel == 0 && windows.columns.kernel == 0 &&
         windows.rows.cells == 1 && windows.columns.cells == 1;
}

template <typename T, int V>
void LaunchWholeImage(const Launch& launch, const Tensor& x, const Tensor& y,
                      const PoolShape& in) {
  const int pixels = in.height * in.width;
  if (in.packs == 1 && V == 1) {
    const auto blocks =
        static_cast<unsigned>((in.images + kMeanDepth - 1) / kMeanDepth);
    PlaneMeanKernel<T><<<blocks, kPoolThreads, 0, launch.stream()>>>(
        PoolData<const T>(x), PoolData<T>(y), pixels, in.images);
    return;
  }
  const int groups = (in.packs + kMeanLanes - 1) / kMeanLanes;
  const auto blocks = static_cast<unsigned>(in.images * groups);
  ImageMeanKernel<T, V><<<blocks, kPoolThreads, 0, launch.stream()>>>(
      PoolData<const T>(x), PoolData<T>(y), pixels, in.packs, groups);
}

}  // namespace

Tensor MeanPool(const Tensor& x, const Windows& windows) {
  constexpr char kOp[] = "mean_pool";
  const MemoryFormat format = x.SuggestFormat();
  const Tensor dense = x.Contiguous(format);
  const Shape y_shape(
      {x.dim(0), x.dim(1), windows.rows.cells, windows.columns.cells});
  Tensor y = Tensor::Empty(
      y_shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
  if (y.numel() == 0) return y;
  const Launch launch(kOp, {&y}, {&dense});
  const int pack = PoolPack(x.shape(), x.dtype(), format, {&dense, &y});
  const MeanPoolArgs args =
      ArgsOf(kOp, x.shape(), y_shape, format, pack, windows);
  const PoolGrid grid(kOp, args.out, args.in);
  VisitPool(kOp, x.dtype(), pack, [&](auto type, auto v) {
    using T = typename decltype(type)::type;
    if (IsWholeImage(windows)) {
      LaunchWholeImage<T, decltype(v)::value>(launch, dense, y, args.in);
      return;
    }
    MeanPoolKernel<T, decltype(v)::value>
        <<<grid.blocks, grid.threads, 0, launch.stream()>>>(
            PoolData<const T>(dense), PoolData<T>(y), args);
  });
  launch.Check();
  return y;
}

Tensor MeanPoolBackward(const Tensor& dy, const Shape& x_shape,
                        const Windows& windows, MemoryFormat format) {
  constexpr char kOp[] = "mean_pool_backward";
  const Tensor dense = dy.Contiguous(format);
  Tensor dx = Tensor::Empty(
      x_shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return dx;
  const Launch launch(kOp, {&dx}, {&dense});
  const int pack = PoolPack(x_shape, dy.dtype(), format, {&dense, &dx});
  const MeanPoolArgs args =
      ArgsOf(kOp, x_shape, dy.shape(), format, pack, windows);
  const PoolGrid grid(kOp, args.in, args.out);
  VisitPool(kOp, dy.dtype(), pack, [&](auto type, auto v) {
    using T = typename decltype(type)::type;
    MeanPoolBackwardKernel<T, decltype(v)::value>
        <<<grid.blocks, grid.threads, 0, launch.stream()>>>(
            PoolData<const T>(dense), PoolData<T>(dx), args);
  });
  launch.Check();
  return dx;
}

}  // namespace baton::cuda

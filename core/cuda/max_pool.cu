// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/pool.h"
#include "core/cuda/pool_grid.cuh"

namespace baton::cuda {
namespace {

constexpr int kMostPlacesInU8 = 256;

struct MaxPoolArgs {
  PoolShape in, out;
  WindowAxis<int> rows, columns;
};

template <typename P, int V>
__device__ __forceinline__ Packed<P, V> PackedPlaces(const int (&places)[V]) {
  P narrow[V];
#pragma unroll
  for (int i = 0; i < V; ++i) narrow[i] = static_cast<P>(places[i]);
  Packed<P, V> pack;
  memcpy(&pack.word, narrow, sizeof(narrow));
  return pack;
}

// Finds the first maximum of each window; NaN counts as greater than all
// numbers.
template <typename T, int V, typename P>
__global__ void __launch_bounds__(kPoolThreads)
    MaxPoolKernel(const T* x, T* y, P* places, MaxPoolArgs args) {
  using A = Compute<T>;
  constexpr int kInFlight = 3;
  const WindowAxis<int> rows = args.rows, columns = args.columns;
  ForEachPack(args.out, [&](int64_t image, int row, int column, int at) {
    const int top = row * rows.stride - rows.padding;
    const int left = column * columns.stride - columns.padding;
    const int last = columns.End(column);
    const T* const from = x + args.in.Image(image);
    A best[V];
    int place[V];
    bool first = true;
    for (int h = rows.Start(row); h < rows.End(row); ++h) {
      for (int w = columns.Start(column); w < last; w += kInFlight) {
        Packed<T, V> packs[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (w + j < last)
            packs[j] = ReadPack<V>(from + args.in.InImage(h, w + j, at));
        }
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (w + j >= last) break;
          A value[V];
          Unpack(packs[j], value);
          const int tap = (h - top) * columns.kernel + (w + j - left);
#pragma unroll
          for (int i = 0; i < V; ++i) {
            const bool take =
                first || (!(value[i] <= best[i]) && best[i] == best[i]);
            best[i] = take ? value[i] : best[i];
            place[i] = take ? tap : place[i];
          }
          first = false;
        }
      }
    }
    const int64_t to =
        args.out.Image(image) + args.out.InImage(row, column, at);
    WritePack(y + to, Rounded<T>(best));
    WritePack(places + to, PackedPlaces<P>(place));
  });
}

template <typename T, int V, typename P>
__global__ void __launch_bounds__(kPoolThreads)
    MaxPoolBackwardKernel(const T* dy, const P* places, T* dx,
                          MaxPoolArgs args) {
  using A = Compute<T>;
  constexpr int kInFlight = 2;
  const WindowAxis<int> rows = args.rows, columns = args.columns;
  ForEachPack(args.in, [&](int64_t image, int h, int w, int at) {
    const int last = columns.EndCell(w);
    const int64_t first = args.out.Image(image);
    const T* const gradients = dy + first;
    const P* const taps = places + first;
    A sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = A(0);
    for (int row = rows.FirstCell(h); row < rows.EndCell(h); ++row) {
      const int above = h + rows.padding - row * rows.stride;
      for (int c = columns.FirstCell(w); c < last; c += kInFlight) {
        Packed<T, V> packs[kInFlight];
        Packed<P, V> tap_packs[kInFlight];
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (c + j >= last) break;
          const int from = args.out.InImage(row, c + j, at);
          packs[j] = ReadPack<V>(gradients + from);
          tap_packs[j] = ReadPack<V>(taps + from);
        }
#pragma unroll
        for (int j = 0; j < kInFlight; ++j) {
          if (c + j >= last) break;
          A value[V];
          Unpack(packs[j], value);
          P place[V];
          memcpy(place, &tap_packs[j].word, sizeof(place));
          const int tap = above * columns.kernel + w + columns.padding -
                          (c + j) * columns.stride;
#pragma unroll
          for (int i = 0; i < V; ++i)
            sum[i] += static_cast<int>(place[i]) == tap ? value[i] : A(0);
        }
      }
    }
    WritePack(dx + args.in.Image(image) + args.in.InImage(h, w, at),
              Rounded<T>(sum));
  });
}

MaxPoolArgs ArgsOf(const char* op, const Shape& x, const Shape& y,
                   MemoryFormat format, int pack,
                   const ops::Pool2dOptions& options) {
  const auto axis = [&](size_t i) {
    const int at = static_cast<int>(i) + 2;
    return Narrowed(op, {.size = x[at],
                         .cells = y[at],
                         .kernel = options.kernel[i],
                         .stride = options.stride[i],
                         .padding = options.padding[i]});
  };
  return {.in = PoolShape(x, format, pack),
          .out = PoolShape(y, format, pack),
          .rows = axis(0),
          .columns = axis(1)};
}

int PackFor(const Shape& shape, DType dtype, MemoryFormat format, DType places,
            std::initializer_list<const Tensor*> tensors) {
  return places == DType::kU8 ? PoolPack(shape, dtype, format, tensors) : 1;
}

// Calls fn(std::type_identity<T>, V, std::type_identity<P>). V is 1 if places
// are i32.
template <typename Fn>
void VisitPlaces(const char* op, DType dtype, int pack, DType places, Fn fn) {
  VisitPool(op, dtype, pack, [&](auto type, auto width) {
    if (places == DType::kU8) {
      fn(type, width, std::type_identity<uint8_t>());
    } else if constexpr (decltype(width)::value == 1) {
      fn(type, width, std::type_identity<int32_t>());
    }
  });
}

}  // namespace

ops::MaxPool2dResult MaxPool(const Tensor& x, const Shape& y_shape,
                             const ops::Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d";
  const MemoryFormat format = x.SuggestFormat();
  const Tensor dense = x.Contiguous(format);
  const bool narrow = options.kernel[0] * options.kernel[1] <= kMostPlacesInU8;
  const DType places = narrow ? DType::kU8 : DType::kI32;
  const auto empty = [&](DType dtype) {
    return Tensor::Empty(
        y_shape, {.dtype = dtype, .device = x.device(), .format = format});
  };
  ops::MaxPool2dResult result = {.y = empty(x.dtype()),
                                 .workspace = empty(places)};
  if (result.y.numel() == 0) return result;
  const Launch launch(kOp, {&result.y, &result.workspace}, {&dense});
  const int pack = PackFor(x.shape(), x.dtype(), format, places,
                           {&dense, &result.y, &result.workspace});
  const MaxPoolArgs args =
      ArgsOf(kOp, x.shape(), y_shape, format, pack, options);
  const PoolGrid grid(kOp, args.out, args.in);
  VisitPlaces(kOp, x.dtype(), pack, places, [&](auto type, auto v, auto p) {
    using T = typename decltype(type)::type;
    using P = typename decltype(p)::type;
    MaxPoolKernel<T, decltype(v)::value, P>
        <<<grid.blocks, grid.threads, 0, launch.stream()>>>(
            PoolData<const T>(dense), PoolData<T>(result.y),
            PoolData<P>(result.workspace), args);
  });
  launch.Check();
  return result;
}

Tensor MaxPoolBackward(const Tensor& dy, const Tensor& workspace,
                       const Shape& x_shape,
                       const ops::Pool2dOptions& options) {
  constexpr char kOp[] = "max_pool2d_backward";
  const MemoryFormat format = workspace.SuggestFormat();
  const Tensor dense = dy.Contiguous(format);
  const Tensor places = workspace.Contiguous(format);
  Tensor dx = Tensor::Empty(
      x_shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return dx;
  const Launch launch(kOp, {&dx}, {&dense, &places});
  const int pack = PackFor(x_shape, dy.dtype(), format, places.dtype(),
                           {&dense, &dx, &places});
  const MaxPoolArgs args =
      ArgsOf(kOp, x_shape, dy.shape(), format, pack, options);
  const PoolGrid grid(kOp, args.in, args.out);
  VisitPlaces(kOp, dy.dtype(), pack, places.dtype(),
              [&](auto type, auto v, auto p) {
                using T = typename decltype(type)::type;
                using P = typename decltype(p)::type;
                MaxPoolBackwardKernel<T, decltype(v)::value, P>
                    <<<grid.blocks, grid.threads, 0, launch.stream()>>>(
                        PoolData<const T>(dense), PoolData<const P>(places),
                        PoolData<T>(dx), args);
              });
  launch.Check();
  return dx;
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/cuda/device_types.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/loop.cuh"
#include "core/strided_loop.h"
#include "core/tensor.h"

// Element-wise kernels: Map<Out, In...>(launch, fn, out, in...) sets every
// element of `out` to fn(elements of in...). One kernel moves packs of 16 bytes
// if rows are dense (or one repeated element) and aligned, as in dense tensors
// and most broadcasts; the other takes any strides.
namespace baton::cuda {

// The number of packs that a thread loads before it uses the first.
template <int kPack>
inline constexpr int kPacksInFlight = kPack == 1 ? 4 : 2;

template <typename... T>
struct Tuple {};
template <typename Head, typename... Tail>
struct Tuple<Head, Tail...> {
  Head head;
  Tuple<Tail...> tail;
};

template <int kPack, typename T>
__device__ __forceinline__ Pack<T, kPack> LoadPack(const T* from,
                                                   int64_t stride) {
  if constexpr (kPack == 1) {
    return {{*from}};
  } else {
    if (stride == 1) return *reinterpret_cast<const Pack<T, kPack>*>(from);
    Pack<T, kPack> pack;
    const T value = *from;
#pragma unroll
    for (int i = 0; i < kPack; ++i) pack.at[i] = value;
    return pack;
  }
}

// Loads the packs of operands I, I + 1, ... at their offsets.
template <int kPack, int I, int N>
__device__ __forceinline__ Tuple<> LoadPacks(const LoopArgs<N>&,
                                             const int64_t (&)[N]) {
  return {};
}
template <int kPack, int I, int N, typename In, typename... Rest>
__device__ __forceinline__ Tuple<Pack<In, kPack>, Pack<Rest, kPack>...>
LoadPacks(const LoopArgs<N>& loop, const int64_t (&offsets)[N], const In* in,
          const Rest*... rest) {
  return {LoadPack<kPack>(in + offsets[I], loop.strides[I][0]),
          LoadPacks<kPack, I + 1>(loop, offsets, rest...)};
}

// Calls fn with element `at` of every pack.
template <typename Fn, typename... Values>
__device__ __forceinline__ auto ApplyAt(const Fn& fn, int, const Tuple<>&,
                                        Values... values) {
  return fn(values...);
}
template <typename Fn, typename Head, typename... Tail, typename... Values>
__device__ __forceinline__ auto ApplyAt(const Fn& fn, int at,
                                        const Tuple<Head, Tail...>& packs,
                                        Values... values) {
  return ApplyAt(fn, at, packs.tail, values..., packs.head.at[at]);
}

template <int kPack, typename Fn, typename Out, typename... In>
__global__ void __launch_bounds__(kMapThreads)
    MapKernel(const __grid_constant__ LoopArgs<sizeof...(In) + 1> loop, Fn fn,
              Out* out, const In*... in) {
  constexpr int kOperands = sizeof...(In) + 1;
  constexpr int kInFlight = kPacksInFlight<kPack>;
  const uint32_t step = gridDim.x * blockDim.x;
  uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  if (first < loop.tail) {  // the last elements of a dense loop, less than a
                            // pack
    int64_t offsets[kOperands];
    loop.TailOffsets(kPack, first, offsets);
    out[offsets[0]] = ApplyAt(fn, 0, LoadPacks<1, 1>(loop, offsets, in...));
  }
  for (; first < loop.packs; first += kInFlight * step) {
    int64_t offsets[kInFlight][kOperands];
    Tuple<Pack<In, kPack>...> loaded[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i * step < loop.packs) {
        loop.template Offsets<kPack>(first + i * step, offsets[i]);
        loaded[i] = LoadPacks<kPack, 1>(loop, offsets[i], in...);
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i * step < loop.packs) {
        Pack<Out, kPack> result;
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          result.at[j] = ApplyAt(fn, j, loaded[i]);
        }
        *reinterpret_cast<Pack<Out, kPack>*>(out + offsets[i][0]) = result;
      }
    }
  }
}

template <int kPack, typename Fn, typename Out, typename... In>
void LaunchMap(const Launch& launch, const StridedLoop<sizeof...(In) + 1>& loop,
               Fn fn, Out* out, const In*... in) {
  const LoopArgs<sizeof...(In) + 1> args(loop, kPack);
  const int blocks = launch.Blocks(args.packs > 0 ? args.packs : args.tail,
                                   kMapThreads, kPacksInFlight<kPack>);
  MapKernel<kPack>
      <<<blocks, kMapThreads, 0, launch.stream()>>>(args, fn, out, in...);
  launch.Check();
}

template <int kPack, typename... T>
bool FitsPacks(const StridedLoop<sizeof...(T)>& loop, const T*... data) {
  if (!RowsFitPacks(loop, kPack)) return false;
  size_t i = 0;
  bool aligned = true;
  ((aligned = aligned && (loop.inner_stride(i++) == 0 ||
                          IsAligned(data, sizeof(T) * kPack))),
   ...);
  return aligned;
}

template <int kPack, typename Fn, typename Out, typename... In, size_t... I>
void MapPart(const Launch& launch, const StridedLoop<sizeof...(In) + 1>& loop,
             const std::array<int64_t, sizeof...(In) + 1>& offsets,
             std::index_sequence<I...>, Fn fn, Out* out, const In*... in) {
  if constexpr (kPack > 1) {
    if (FitsPacks<kPack>(loop, static_cast<const Out*>(out + offsets[0]),
                         (in + offsets[I + 1])...)) {
      return LaunchMap<kPack>(launch, loop, fn, out + offsets[0],
                              (in + offsets[I + 1])...);
    }
  }
  LaunchMap<1>(launch, loop, fn, out + offsets[0], (in + offsets[I + 1])...);
}

// The number of elements of the largest type in 16 bytes.
template <typename... T>
inline constexpr int kCommonPack = 16 /
                                   static_cast<int>(std::max({sizeof(T)...}));

// `Out` and `In` are the types of elements in kernels. All tensors have one
// shape, and `out` may be one of the inputs. kPack = 1 omits the kernel for
// packs, for rare cases that are not worth its code size.
template <int kPack, typename Out, typename... In, typename Fn,
          typename... Tensors>
void MapPacked(const Launch& launch, Fn fn, const Tensor& out,
               const Tensors&... in) {
  if (out.numel() == 0) return;
  const StridedLoop<sizeof...(In) + 1> loop(
      out.shape(), {&out.strides(), (&in.strides())...});
  ForEachPart(loop, {}, [&](const auto& part, const auto& offsets) {
    MapPart<kPack>(launch, part, offsets, std::index_sequence_for<In...>{}, fn,
                   static_cast<Out*>(out.raw_data()),
                   static_cast<const In*>(in.raw_data())...);
  });
}

template <typename Out, typename... In, typename Fn, typename... Tensors>
void Map(const Launch& launch, Fn fn, const Tensor& out, const Tensors&... in) {
  MapPacked<kCommonPack<Out, In...>, Out, In...>(launch, fn, out, in...);
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>

#include "core/cpu/simd.h"
#include "core/cpu/strided.h"
#include "core/tensor.h"

namespace baton::cpu {

template <typename T>
struct Operand {
  T* data;
  int64_t stride;
};

// Computes out[i] = fn(in[i]...) over one row. The output may be one of the
// inputs if it has the same order; ivdep tells the compiler so.
struct MapRow {
  template <typename Fn, typename Out, typename... In>
  BATON_SIMD_INLINE void operator()(Fn fn, int64_t count, Operand<Out> out,
                                    Operand<In>... in) const {
    Out* to = out.data;
    if (out.stride == 1 && ((in.stride == 1) && ...)) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = fn(in.data[i]...);
      return;
    }
    if constexpr (sizeof...(In) == 2) {
      if (OneScalar(fn, count, out, in...)) return;
    }
    for (int64_t i = 0; i < count; ++i) {
      to[i * out.stride] = fn(in.data[i * in.stride]...);
    }
  }

 private:
  template <typename Fn, typename Out, typename A, typename B>
  BATON_SIMD_INLINE static bool OneScalar(Fn fn, int64_t count,
                                          Operand<Out> out, Operand<A> a,
                                          Operand<B> b) {
    Out* to = out.data;
    if (out.stride != 1) return false;
    if (a.stride == 1 && b.stride == 0) {
      const auto scalar = *b.data;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = fn(a.data[i], scalar);
      return true;
    }
    if (a.stride == 0 && b.stride == 1) {
      const auto scalar = *a.data;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = fn(scalar, b.data[i]);
      return true;
    }
    return false;
  }
};

namespace internal {

template <typename Out, typename... In, typename Fn, typename Loop, size_t... I>
void MapRows(const Loop& loop, int64_t grain, Fn fn, Out* out,
             const std::tuple<const In*...>& in, std::index_sequence<I...>) {
  ForEachRow(loop, grain, [&](const auto& offsets, int64_t count) {
    RunSimd(MapRow{}, fn, count,
            Operand<Out>{out + offsets[0], loop.inner_stride(0)},
            Operand<const In>{std::get<I>(in) + offsets[I + 1],
                              loop.inner_stride(I + 1)}...);
  });
}

}  // namespace internal

// Computes out = fn(in...) element by element. All tensors have one shape; Out
// and In are their element types. A thread gets at least `grain` elements.
template <typename Out, typename... In, typename Fn, typename... Tensors>
void Map(int64_t grain, Fn fn, const Tensor& out, const Tensors&... in) {
  if (out.numel() == 0) return;
  const StridedLoop<sizeof...(In) + 1> loop(
      out.shape(), {&out.strides(), (&in.strides())...});
  internal::MapRows<Out, In...>(
      loop, grain, fn, static_cast<Out*>(out.raw_data()),
      std::tuple<const In*...>(static_cast<const In*>(in.raw_data())...),
      std::index_sequence_for<In...>{});
}

}  // namespace baton::cpu

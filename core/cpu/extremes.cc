// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "core/cpu/lanes.h"
#include "core/cpu/reduce.h"
#include "core/cpu/simd.h"
#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// The elements along the axis.
struct Line {
  int64_t size, stride;
};

template <bool kMax, typename C>
BATON_SIMD_INLINE bool Beats(C candidate, C best) {
  const bool better = kMax ? candidate > best : candidate < best;
  return better | ((candidate != candidate) & (best == best));
}

// Finds the extreme of a dense line, and then its first position: both loops
// vectorise, unlike a single one that keeps the position.
struct DenseLine {
  template <bool kMax, typename T>
  BATON_SIMD_INLINE void operator()(std::bool_constant<kMax>, const T* x,
                                    int64_t size, int64_t* position) const {
    using C = ComputeType<T>;
    const C best = ReduceLanes<C>(
        size, Convert<C>(x[0]), [x](int64_t i) { return Convert<C>(x[i]); },
        [](C a, C b) { return Beats<kMax>(b, a) ? b : a; });
    int64_t i = 0;
    constexpr int64_t kStep = 64;
    for (; i + kStep <= size; i += kStep) {
      bool found = false;
      for (int64_t j = 0; j < kStep; ++j) {
        found |= Same(Convert<C>(x[i + j]), best);
      }
      if (found) break;
    }
    while (!Same(Convert<C>(x[i]), best)) ++i;
    *position = i;
  }

  template <typename C>
  BATON_SIMD_INLINE static bool Same(C a, C b) {
    return (a == b) | ((a != a) & (b != b));
  }
};

template <bool kMax, typename T>
int64_t FirstExtreme(const T* x, const Line& line) {
  using C = ComputeType<T>;
  int64_t position = 0;
  if (line.stride == 1) {
    RunSimd(DenseLine{}, std::bool_constant<kMax>{}, x, line.size, &position);
    return position;
  }
  C best = Convert<C>(x[0]);
  for (int64_t k = 1; k < line.size; ++k) {
    const C candidate = Convert<C>(x[k * line.stride]);
    if (Beats<kMax>(candidate, best)) {
      best = candidate;
      position = k;
    }
  }
  return position;
}

template <bool kMax, typename T>
void Run(const Tensor& values, const Tensor& indices, const Tensor& x,
         int axis) {
  const Line line{.size = x.dim(axis),
                  .stride = x.strides()[static_cast<size_t>(axis)]};
  const StridedLoop<3> loop(
      values.shape(), {&values.strides(), &indices.strides(), &x.strides()});
  T* to = values.data<T>();
  int64_t* positions = indices.data<int64_t>();
  const T* from = static_cast<const T*>(x.raw_data());
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / line.size);
  ForEachRow(loop, grain, [&](const auto& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const T* start = from + offsets[2] + i * loop.inner_stride(2);
      const int64_t position = FirstExtreme<kMax>(start, line);
      to[offsets[0] + i * loop.inner_stride(0)] = start[position * line.stride];
      positions[offsets[1] + i * loop.inner_stride(1)] = position;
    }
  });
}

}  // namespace

void FindExtremes(Extreme extreme, const Tensor& values, const Tensor& indices,
                  const Tensor& x, int axis) {
  if (values.numel() == 0) return;
  VisitDType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (extreme == Extreme::kMax) {
      Run<true, T>(values, indices, x, axis);
    } else {
      Run<false, T>(values, indices, x, axis);
    }
  });
}

}  // namespace baton::cpu

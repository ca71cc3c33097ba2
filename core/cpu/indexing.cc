// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/indexing.h"

#include <algorithm>
#include <cstring>

#include "core/cpu/simd.h"
#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// Returns the shape of `index` with extent 1 for the axis: one element for each
// line of indices.
Shape LinesOf(const Tensor& index, int axis) {
  Dims dims = index.shape().dims();
  dims[static_cast<size_t>(axis)] = 1;
  return Shape(std::move(dims));
}

// Calls fn(offset of row i of [N, D], offset of row index[i] of the table,
// bytes of a row) for each index that is not -1.
template <typename Fn>
void ForIndexedRows(const Tensor& table, const Tensor& index, Fn fn) {
  const size_t bytes =
      static_cast<size_t>(table.dim(1)) * SizeOf(table.dtype());
  const int64_t* rows = index.data<int64_t>();
  const int64_t grain = std::max<int64_t>(1, kGrain / table.dim(1));
  ParallelFor(index.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (rows[i] < 0) continue;
      fn(static_cast<size_t>(i) * bytes, static_cast<size_t>(rows[i]) * bytes,
         bytes);
    }
  });
}

template <typename T>
T Plus(T a, T b) {
  using C = ComputeType<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return a | b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return Convert<T>(Convert<C>(a) + Convert<C>(b));
  }
}

// Calls line(index line, indexed line, other line) with the offsets of each
// line along `axis`. The caller knows the strides along it.
template <typename Fn>
void ForLines(const Tensor& index, const Tensor& indexed, const Tensor& other,
              int axis, Fn fn) {
  const StridedLoop<3> loop(
      LinesOf(index, axis),
      {&index.strides(), &indexed.strides(), &other.strides()});
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / index.dim(axis));
  ForEachRow(loop, grain, [&](const auto& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      fn(offsets[0] + i * loop.inner_stride(0),
         offsets[1] + i * loop.inner_stride(1),
         offsets[2] + i * loop.inner_stride(2));
    }
  });
}

int64_t StrideAt(const Tensor& t, int axis) {
  return t.strides()[static_cast<size_t>(axis)];
}

struct AddRow {
  template <typename T>
  BATON_SIMD_INLINE void operator()(T* to, const T* from, int64_t count) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = Plus(to[i], from[i]);
  }
};

}  // namespace

void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index) {
  if (index.numel() == 0) return;
  const int64_t* indices = index.data<int64_t>();
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = static_cast<T*>(out.raw_data());
    const T* from = static_cast<const T*>(x.raw_data());
    ForLines(index, x, out, axis, [&](int64_t i, int64_t f, int64_t t) {
      for (int64_t k = 0; k < index.dim(axis); ++k) {
        const int64_t position = indices[i + k * StrideAt(index, axis)];
        to[t + k * StrideAt(out, axis)] =
            from[f + position * StrideAt(x, axis)];
      }
    });
  });
}

void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source) {
  if (index.numel() == 0) return;
  const int64_t* indices = index.data<int64_t>();
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = static_cast<T*>(out.raw_data());
    const T* from = static_cast<const T*>(source.raw_data());
    ForLines(index, out, source, axis, [&](int64_t i, int64_t t, int64_t f) {
      for (int64_t k = 0; k < index.dim(axis); ++k) {
        const int64_t position = indices[i + k * StrideAt(index, axis)];
        const T value = from[f + k * StrideAt(source, axis)];
        T& cell = to[t + position * StrideAt(out, axis)];
        cell = mode == ScatterMode::kAdd ? Plus(cell, value) : value;
      }
    });
  });
}

void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index) {
  if (out.numel() == 0) return;
  auto* to = static_cast<std::byte*>(out.raw_data());
  const auto* from = static_cast<const std::byte*>(table.raw_data());
  ForIndexedRows(table, index, [&](size_t at, size_t row, size_t bytes) {
    std::memcpy(to + at, from + row, bytes);
  });
}

void PutRows(const Tensor& table, const Tensor& values, const Tensor& index) {
  if (values.numel() == 0) return;
  auto* to = static_cast<std::byte*>(table.raw_data());
  const auto* from = static_cast<const std::byte*>(values.raw_data());
  ForIndexedRows(table, index, [&](size_t at, size_t row, size_t bytes) {
    std::memcpy(to + row, from + at, bytes);
  });
}

void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index) {
  if (dy.numel() == 0) return;
  const int64_t width = table.dim(1);
  const int64_t* indices = index.data<int64_t>();
  // Each thread owns some rows of the table, so that the order of additions to
  // a row is the order of the indices.
  const int64_t grain = std::max<int64_t>(
      1, table.dim(0) * kGrain / std::max<int64_t>(1, dy.numel()));
  VisitDType(table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = table.data<T>();
    const T* from = dy.data<T>();
    ParallelFor(table.dim(0), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < index.numel(); ++i) {
        if (indices[i] < begin || indices[i] >= end) continue;
        RunSimd(AddRow{}, to + indices[i] * width, from + i * width, width);
      }
    });
  });
}

int64_t RowSlots(const Tensor& slots, const Tensor& unique, const Tensor& index,
                 int64_t) {
  const int64_t* numbers = index.data<int64_t>();
  int64_t* to = slots.data<int64_t>();
  int64_t* kept = unique.data<int64_t>();
  int64_t* const end = std::copy_if(numbers, numbers + index.numel(), kept,
                                    [](int64_t number) { return number >= 0; });
  std::sort(kept, end);
  int64_t* const last = std::unique(kept, end);
  for (int64_t i = 0; i < index.numel(); ++i) {
    to[i] =
        numbers[i] < 0 ? -1 : std::lower_bound(kept, last, numbers[i]) - kept;
  }
  return last - kept;
}

void OneHot(const Tensor& out, const Tensor& labels) {
  const int64_t* label = labels.data<int64_t>();
  float* to = out.data<float>();
  const int64_t classes = out.dim(1);
  std::fill_n(to, out.numel(), 0.0f);
  for (int64_t i = 0; i < labels.numel(); ++i) to[i * classes + label[i]] = 1;
}

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/copy.h"

#include <cstring>

#include "core/cpu/simd.h"
#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

using Loop = StridedLoop<2>;

struct ConvertRow {
  template <typename To, typename From>
  BATON_SIMD_INLINE void operator()(To* to, int64_t to_stride, const From* from,
                                    int64_t from_stride, int64_t count) const {
    if (to_stride == 1 && from_stride == 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = Convert<To>(from[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        to[i * to_stride] = Convert<To>(from[i * from_stride]);
      }
    }
  }
};

template <typename To, typename From>
void CopyRows(const Loop& loop, To* to, const From* from) {
  ForEachRow(loop, kGrain, [&](const auto& offsets, int64_t count) {
    RunSimd(ConvertRow{}, to + offsets[0], loop.inner_stride(0),
            from + offsets[1], loop.inner_stride(1), count);
  });
}

// Returns the dim, other than the innermost one, in which the source is dense,
// or -1.
int DenseSourceDim(const Loop& loop) {
  const int rank = static_cast<int>(loop.sizes.size());
  if (loop.inner_stride(0) != 1 || loop.inner_stride(1) <= 1) return -1;
  for (int d = rank - 2; d >= 0; --d) {
    if (loop.strides[1][static_cast<size_t>(d)] == 1) return d;
  }
  return -1;
}

struct Plane {
  int64_t rows, columns;  // of the target; columns are dense in the target
  int64_t to_stride, from_stride;
};

// Works in blocks of 16 x 16, so that every cache line of both sides is used
// whole.
template <typename T>
void TransposeRows(const Plane& plane, T* to, const T* from, int64_t row_begin,
                   int64_t row_end) {
  constexpr int64_t kBlock = 16;
  for (int64_t c0 = 0; c0 < plane.columns; c0 += kBlock) {
    const int64_t c1 = std::min(c0 + kBlock, plane.columns);
    for (int64_t r = row_begin; r < row_end; ++r) {
      for (int64_t c = c0; c < c1; ++c) {
        to[r * plane.to_stride + c] = from[c * plane.from_stride + r];
      }
    }
  }
}

template <typename T>
void Transpose(const Loop& loop, int dense, T* to, const T* from) {
  constexpr int64_t kRowBlock = 16;
  const size_t row_dim = static_cast<size_t>(dense);
  const Plane plane{.rows = loop.sizes[row_dim],
                    .columns = loop.inner_size(),
                    .to_stride = loop.strides[0][row_dim],
                    .from_stride = loop.inner_stride(1)};
  const int64_t blocks = (plane.rows + kRowBlock - 1) / kRowBlock;
  // The loop over planes has one element for each element of the loop without
  // the two dims; its innermost dim is the blocks of rows.
  Dims sizes;
  Dims to_strides;
  Dims from_strides;
  for (size_t d = 0; d + 1 < loop.sizes.size(); ++d) {
    const bool is_row = d == row_dim;
    sizes.push_back(is_row ? blocks : loop.sizes[d]);
    to_strides.push_back(loop.strides[0][d] * (is_row ? kRowBlock : 1));
    from_strides.push_back(loop.strides[1][d] * (is_row ? kRowBlock : 1));
  }
  // The third operand is the block's index, which tells the last block's size.
  Dims block_strides(sizes.size(), 0);
  block_strides[row_dim] = 1;
  const StridedLoop<3> planes(Shape(sizes),
                              {&to_strides, &from_strides, &block_strides});
  const int64_t grain = std::max<int64_t>(
      1, kGrain / std::max<int64_t>(1, plane.columns * kRowBlock));
  ForEachRow(planes, grain, [&](const auto& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block = offsets[2] + i * planes.inner_stride(2);
      TransposeRows(plane, to + offsets[0] + i * planes.inner_stride(0),
                    from + offsets[1] + i * planes.inner_stride(1), 0,
                    std::min(kRowBlock, plane.rows - block * kRowBlock));
    }
  });
}

template <typename T>
void CopySameType(const Loop& loop, T* to, const T* from) {
  if (loop.inner_stride(0) == 1 && loop.inner_stride(1) == 1) {
    ForEachRow(loop, kGrain, [&](const auto& offsets, int64_t count) {
      std::memcpy(to + offsets[0], from + offsets[1],
                  static_cast<size_t>(count) * sizeof(T));
    });
  } else if (const int dense = DenseSourceDim(loop); dense >= 0) {
    Transpose(loop, dense, to, from);
  } else {
    CopyRows(loop, to, from);
  }
}

}  // namespace

void Copy(const Tensor& target, const Tensor& source) {
  if (target.numel() == 0) return;
  const Loop loop(target.shape(), {&target.strides(), &source.strides()});
  void* to = target.raw_data();
  const void* from = source.raw_data();
  if (target.dtype() != source.dtype()) {
    VisitDType(target.dtype(), [&](auto to_type) {
      VisitDType(source.dtype(), [&](auto from_type) {
        using To = typename decltype(to_type)::type;
        using From = typename decltype(from_type)::type;
        CopyRows(loop, static_cast<To*>(to), static_cast<const From*>(from));
      });
    });
    return;
  }
  VisitDType(target.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CopySameType(loop, static_cast<T*>(to), static_cast<const T*>(from));
  });
}

void Fill(const Tensor& target, double value) {
  if (target.numel() == 0) return;
  const StridedLoop<1> loop(target.shape(), {&target.strides()});
  VisitDType(target.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* to = static_cast<T*>(target.raw_data());
    const T element = Convert<T>(value);
    const int64_t stride = loop.inner_stride(0);
    ForEachRow(loop, kGrain, [&](const auto& offsets, int64_t count) {
      T* row = to + offsets[0];
      if (stride == 1) {
        std::fill_n(row, count, element);
      } else {
        for (int64_t i = 0; i < count; ++i) row[i * stride] = element;
      }
    });
  });
}

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/cpu/simd.h"

// The inner loops of batch norm. They run over `rows` rows of `width` elements,
// which lie one after another. Coefficients and sums have `width` elements: one
// for each column.
namespace baton::cpu {

// The number of rows that are summed in T before the sums are added to double
// ones.
inline constexpr int64_t kRowsPerFlush = 128;

template <typename T>
BATON_SIMD_INLINE void FlushSums(int64_t width, T* partial, double* sums) {
  for (int64_t c = 0; c < width; ++c) {
    sums[c] += static_cast<double>(partial[c]);
    partial[c] = T(0);
  }
}

// Adds the sums of x - center to sums[0, width) and the sums of its squares to
// sums[width, 2 width). `partial` [2 width] is zero before and after.
template <typename T>
struct SumMoments {
  BATON_SIMD_INLINE void operator()(const T* __restrict x, int64_t rows,
                                    int64_t width, const T* __restrict center,
                                    T* __restrict partial,
                                    double* __restrict sums) const {
    T* __restrict first = partial;
    T* __restrict second = partial + width;
    int64_t row = 0;
    while (row < rows) {
      const int64_t stop =
          row + kRowsPerFlush < rows ? row + kRowsPerFlush : rows;
      for (; row + 4 <= stop; row += 4) {
        const T* __restrict x0 = x + row * width;
        const T* __restrict x1 = x0 + width;
        const T* __restrict x2 = x1 + width;
        const T* __restrict x3 = x2 + width;
        for (int64_t c = 0; c < width; ++c) {
          const T a = x0[c] - center[c], b = x1[c] - center[c];
          const T d = x2[c] - center[c], e = x3[c] - center[c];
          first[c] += (a + b) + (d + e);
          second[c] += (a * a + b * b) + (d * d + e * e);
        }
      }
      for (; row < stop; ++row) {
        for (int64_t c = 0; c < width; ++c) {
          const T a = x[row * width + c] - center[c];
          first[c] += a;
          second[c] += a * a;
        }
      }
      FlushSums(2 * width, partial, sums);
    }
  }
};

// Computes y = x * scale + shift, plus the residual if kResidual, through a
// ReLU if kRelu.
template <typename T, bool kRelu, bool kResidual>
struct ApplyNorm {
  BATON_SIMD_INLINE void operator()(const T* __restrict x,
                                    const T* __restrict residual,
                                    T* __restrict y, int64_t rows,
                                    int64_t width, const T* __restrict scale,
                                    const T* __restrict shift) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = row * width;
      for (int64_t c = 0; c < width; ++c) {
        T value = x[at + c] * scale[c] + shift[c];
        if constexpr (kResidual) value += residual[at + c];
        // Written this way round, it passes NaN on.
        if constexpr (kRelu) value = value < T(0) ? T(0) : value;
        y[at + c] = value;
      }
    }
  }
};

// What the ReLU's mask is computed from: there is no mask, it is y > 0, or it
// is x * scale + shift > 0.
enum class ReluMask { kNone, kOutput, kInput };

template <ReluMask kMask, typename T>
BATON_SIMD_INLINE T Masked(T dy, T x, const T* y, T scale, T shift) {
  if constexpr (kMask == ReluMask::kOutput) return *y > T(0) ? dy : T(0);
  if constexpr (kMask == ReluMask::kInput)
    return x * scale + shift > T(0) ? dy : T(0);
  return dy;
}

// With g = dy through the mask, adds the sums of g to sums[0, width) and the
// sums of g * (x - center) to sums[width, 2 width). Writes g if kKeep.
template <typename T, ReluMask kMask, bool kKeep>
struct SumGradients {
  BATON_SIMD_INLINE void operator()(
      const T* __restrict dy, const T* __restrict x, const T* __restrict y,
      T* __restrict g, int64_t rows, int64_t width, const T* __restrict center,
      const T* __restrict scale, const T* __restrict shift,
      T* __restrict partial, double* __restrict sums) const {
    T* __restrict first = partial;
    T* __restrict second = partial + width;
    int64_t row = 0;
    while (row < rows) {
      const int64_t stop =
          row + kRowsPerFlush < rows ? row + kRowsPerFlush : rows;
      for (; row + 2 <= stop; row += 2) {
        const int64_t i = row * width, j = i + width;
        for (int64_t c = 0; c < width; ++c) {
          const T a =
              Masked<kMask>(dy[i + c], x[i + c], y + i + c, scale[c], shift[c]);
          const T b =
              Masked<kMask>(dy[j + c], x[j + c], y + j + c, scale[c], shift[c]);
          first[c] += a + b;
          second[c] += a * (x[i + c] - center[c]) + b * (x[j + c] - center[c]);
          if constexpr (kKeep) g[i + c] = a;
          if constexpr (kKeep) g[j + c] = b;
        }
      }
      for (; row < stop; ++row) {
        const int64_t i = row * width;
        for (int64_t c = 0; c < width; ++c) {
          const T a =
              Masked<kMask>(dy[i + c], x[i + c], y + i + c, scale[c], shift[c]);
          first[c] += a;
          second[c] += a * (x[i + c] - center[c]);
          if constexpr (kKeep) g[i + c] = a;
        }
      }
      FlushSums(2 * width, partial, sums);
    }
  }
};

// Computes dx = g * scale + x * slope + offset, with g = dy through the mask.
template <typename T, ReluMask kMask>
struct InputGradient {
  BATON_SIMD_INLINE void operator()(
      const T* __restrict dy, const T* __restrict x, const T* __restrict y,
      T* __restrict dx, int64_t rows, int64_t width, const T* __restrict scale,
      const T* __restrict shift, const T* __restrict slope,
      const T* __restrict offset) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = row * width;
      for (int64_t c = 0; c < width; ++c) {
        const T g =
            Masked<kMask>(dy[i + c], x[i + c], y + i + c, scale[c], shift[c]);
        dx[i + c] = g * scale[c] + (x[i + c] * slope[c] + offset[c]);
      }
    }
  }
};

}  // namespace baton::cpu

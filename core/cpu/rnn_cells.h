// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/cpu/math.h"
#include "core/cpu/simd.h"

// One step of a recurrent layer for one sequence, element by element
// (core/ops/rnn.h has the formulas). Gates lie one after another, with `hidden`
// elements each. `_before` marks what belongs to the step before.
namespace baton::cpu {

struct LstmCell {
  // `gates` holds the sums and then the activations.
  template <typename T>
  BATON_SIMD_INLINE void operator()(T* __restrict gates,
                                    const T* __restrict c_before,
                                    T* __restrict c, T* __restrict h,
                                    int64_t hidden) const {
    T* __restrict i = gates;
    T* __restrict f = gates + hidden;
    T* __restrict g = gates + 2 * hidden;
    T* __restrict o = gates + 3 * hidden;
    for (int64_t k = 0; k < hidden; ++k) {
      i[k] = Sigmoid(i[k]);
      f[k] = Sigmoid(f[k]);
      g[k] = Tanh(g[k]);
      o[k] = Sigmoid(o[k]);
      c[k] = f[k] * c_before[k] + i[k] * g[k];
      h[k] = o[k] * Tanh(c[k]);
    }
  }
};

struct LstmCellBackward {
  // `dh` is the gradient from later steps and `dy` that from the output. `dc`
  // is the gradient of this step's c, and then of the step before's.
  template <typename T>
  BATON_SIMD_INLINE void operator()(
      const T* __restrict gates, const T* __restrict c_before,
      const T* __restrict c, const T* __restrict dy, const T* __restrict dh,
      T* __restrict dc, T* __restrict dgates, int64_t hidden) const {
    for (int64_t k = 0; k < hidden; ++k) {
      const T i = gates[k], f = gates[hidden + k];
      const T g = gates[2 * hidden + k], o = gates[3 * hidden + k];
      const T tanh_c = Tanh(c[k]);
      const T dh_all = dh[k] + dy[k];
      const T dc_all = dc[k] + dh_all * o * (T(1) - tanh_c * tanh_c);
      dgates[k] = dc_all * g * i * (T(1) - i);
      dgates[hidden + k] = dc_all * c_before[k] * f * (T(1) - f);
      dgates[2 * hidden + k] = dc_all * i * (T(1) - g * g);
      dgates[3 * hidden + k] = dh_all * tanh_c * o * (T(1) - o);
      dc[k] = dc_all * f;
    }
  }
};

struct GruCell {
  // `gates` holds the sums over x and then the activations; `recurrent` holds
  // the sums over h.
  template <typename T>
  BATON_SIMD_INLINE void operator()(T* __restrict gates,
                                    const T* __restrict recurrent,
                                    const T* __restrict h_before,
                                    T* __restrict h, int64_t hidden) const {
    T* __restrict r = gates;
    T* __restrict z = gates + hidden;
    T* __restrict n = gates + 2 * hidden;
    for (int64_t k = 0; k < hidden; ++k) {
      r[k] = Sigmoid(r[k] + recurrent[k]);
      z[k] = Sigmoid(z[k] + recurrent[hidden + k]);
      n[k] = Tanh(n[k] + r[k] * recurrent[2 * hidden + k]);
      h[k] = (T(1) - z[k]) * n[k] + z[k] * h_before[k];
    }
  }
};

struct GruCellBackward {
  // `dh` is the gradient from later steps. It becomes the part of the gradient
  // of h_before that does not pass through the gates.
  template <typename T>
  BATON_SIMD_INLINE void operator()(
      const T* __restrict gates, const T* __restrict recurrent,
      const T* __restrict h_before, const T* __restrict dy, T* __restrict dh,
      T* __restrict dgates, T* __restrict drecurrent, int64_t hidden) const {
    for (int64_t k = 0; k < hidden; ++k) {
      const T r = gates[k], z = gates[hidden + k], n = gates[2 * hidden + k];
      const T dh_all = dh[k] + dy[k];
      const T dn = dh_all * (T(1) - z) * (T(1) - n * n);
      const T dz = dh_all * (h_before[k] - n) * z * (T(1) - z);
      const T dr = dn * recurrent[2 * hidden + k] * r * (T(1) - r);
      dgates[k] = drecurrent[k] = dr;
      dgates[hidden + k] = drecurrent[hidden + k] = dz;
      dgates[2 * hidden + k] = dn;
      drecurrent[2 * hidden + k] = dn * r;
      dh[k] = dh_all * z;
    }
  }
};

}  // namespace baton::cpu

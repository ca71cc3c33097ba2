// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/ops/rnn.h"

namespace baton::cpu {

// One direction of one recurrent layer. All arrays are dense, except that the
// rows of y and dy, [steps, batch] rows of `hidden` elements, are `y_stride`
// apart.
template <typename T>
struct RnnDirection {
  ops::RnnCell cell = ops::RnnCell::kLstm;
  bool reversed = false;  // begins at the last step
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, y_stride = 0;
  const T *w_ih = nullptr, *w_hh = nullptr;
  const T *b_ih = nullptr, *b_hh = nullptr;  // both null: none
  const T* x = nullptr;                      // [steps, batch, input]
  const T *h = nullptr, *c = nullptr;        // initial, [batch, hidden]
  T* y = nullptr;
  T *h_last = nullptr, *c_last = nullptr;
  // These are kept for the gradients: activated gates, [steps, batch, gates *
  // hidden]; the LSTM's cell states, [steps, batch, hidden]; the GRU's sums
  // over h, shaped like gates.
  T *gates = nullptr, *cells = nullptr, *recurrent = nullptr;

  void Forward() const;

  int64_t width() const { return ops::GatesOf(cell) * hidden; }
  // Returns the time step that is computed as the `i`th.
  int64_t Time(int64_t i) const { return reversed ? steps - 1 - i : i; }
};

template <typename T>
struct RnnDirectionGradients {
  const T* dy = nullptr;
  T *dh = nullptr,
    *dc = nullptr;  // of the last step; becomes that of the first
  T* dx = nullptr;
  bool add_to_dx = false;
  T *dw_ih = nullptr, *dw_hh = nullptr;
  T *db_ih = nullptr, *db_hh = nullptr;  // both null: none
  // Gradients of the sums over x and over h, shaped like gates; for an LSTM
  // both point to the same memory.
  T *dgates = nullptr, *drecurrent = nullptr;

  void Backward(const RnnDirection<T>& forward) const;
};

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/rnn_direction.h"

#include <algorithm>

#include "core/cpu/gemm.h"
#include "core/cpu/rnn_cells.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr int64_t kCellGrain = 512;  // elements of a state

// The rows of a state: a step's rows of y, or the initial state.
template <typename T>
struct Rows {
  const T* data;
  int64_t stride;
};

template <typename T>
T* StepOf(const RnnDirection<T>& d, T* values, int64_t time, int64_t width) {
  return values + time * d.batch * width;
}

template <typename T>
Rows<T> HiddenBefore(const RnnDirection<T>& d, int64_t i) {
  if (i == 0) return {d.h, d.hidden};
  return {d.y + d.Time(i - 1) * d.batch * d.y_stride, d.y_stride};
}

template <typename T>
const T* CellsBefore(const RnnDirection<T>& d, int64_t i) {
  return i == 0 ? d.c : StepOf(d, d.cells, d.Time(i - 1), d.hidden);
}

// Calls body(row) for each sequence of a step.
template <typename T, typename Body>
void ForEachRow(const RnnDirection<T>& d, Body body) {
  const int64_t grain = std::max<int64_t>(1, kCellGrain / d.hidden);
  ParallelFor(d.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// Computes target [rows, width] = source [rows, inner] * weight^T + bias; with
// `add`, adds it to the target.
template <typename T>
void Project(int64_t rows, int64_t width, Rows<T> source, int64_t inner,
             const T* weight, const T* bias, bool add, T* target) {
  if (bias != nullptr) {
    for (int64_t row = 0; row < rows; ++row) {
      T* to = target + row * width;
      for (int64_t k = 0; k < width; ++k)
        to[k] = (add ? to[k] : T(0)) + bias[k];
    }
  }
  Gemm(rows, width, inner, Operand<T>{source.data, source.stride},
       Operand<T>{weight, inner, true}, T(add || bias != nullptr ? 1 : 0),
       target, width);
}

template <typename T>
void LstmStep(const RnnDirection<T>& d, int64_t i) {
  const int64_t time = d.Time(i), width = d.width();
  T* gates = StepOf(d, d.gates, time, width);
  Project(d.batch, width, HiddenBefore(d, i), d.hidden, d.w_hh, d.b_hh, true,
          gates);
  const T* c_before = CellsBefore(d, i);
  T* c = StepOf(d, d.cells, time, d.hidden);
  T* y = StepOf(d, d.y, time, d.y_stride);
  ForEachRow(d, [&](int64_t row) {
    RunSimd(LstmCell{}, gates + row * width, c_before + row * d.hidden,
            c + row * d.hidden, y + row * d.y_stride, d.hidden);
  });
}

template <typename T>
void GruStep(const RnnDirection<T>& d, int64_t i) {
  const int64_t time = d.Time(i), width = d.width();
  T* gates = StepOf(d, d.gates, time, width);
  T* recurrent = StepOf(d, d.recurrent, time, width);
  const Rows<T> before = HiddenBefore(d, i);
  Project(d.batch, width, before, d.hidden, d.w_hh, d.b_hh, false, recurrent);
  T* y = StepOf(d, d.y, time, d.y_stride);
  ForEachRow(d, [&](int64_t row) {
    RunSimd(GruCell{}, gates + row * width,
            static_cast<const T*>(recurrent + row * width),
            before.data + row * before.stride, y + row * d.y_stride, d.hidden);
  });
}

// Computes the backward of step i: turns the gradients `dh` and `dc` of its
// state into those of the previous state.
template <typename T>
void StepBackward(const RnnDirection<T>& d, const RnnDirectionGradients<T>& g,
                  int64_t i) {
  const int64_t time = d.Time(i), width = d.width(), hidden = d.hidden;
  const T* gates = StepOf(d, d.gates, time, width);
  const T* dy = g.dy + time * d.batch * d.y_stride;
  T* dgates = StepOf(d, g.dgates, time, width);
  T* drecurrent = StepOf(d, g.drecurrent, time, width);
  const bool lstm = d.cell == ops::RnnCell::kLstm;
  const Rows<T> before = HiddenBefore(d, i);
  ForEachRow(d, [&](int64_t row) {
    const T* row_gates = gates + row * width;
    const T* row_dy = dy + row * d.y_stride;
    T* row_dh = g.dh + row * hidden;
    if (lstm) {
      RunSimd(LstmCellBackward{}, row_gates, CellsBefore(d, i) + row * hidden,
              static_cast<const T*>(StepOf(d, d.cells, time, hidden) +
                                    row * hidden),
              row_dy, static_cast<const T*>(row_dh), g.dc + row * hidden,
              dgates + row * width, hidden);
    } else {
      RunSimd(GruCellBackward{}, row_gates,
              static_cast<const T*>(StepOf(d, d.recurrent, time, width) +
                                    row * width),
              before.data + row * before.stride, row_dy, row_dh,
              dgates + row * width, drecurrent + row * width, hidden);
    }
  });
  Gemm(d.batch, hidden, width, Operand<T>{drecurrent, width},
       Operand<T>{d.w_hh, hidden}, T(lstm ? 0 : 1), g.dh, hidden);
}

template <typename T>
void SumRows(const T* values, int64_t rows, int64_t width, T* sums) {
  std::fill_n(sums, width, T(0));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < width; ++k) sums[k] += values[row * width + k];
  }
}

// Each step's gates have read the state that the previous step left in y.
template <typename T>
void RecurrentWeights(const RnnDirection<T>& d,
                      const RnnDirectionGradients<T>& g) {
  const int64_t width = d.width(), rest = (d.steps - 1) * d.batch;
  const auto product = [&](const T* drecurrent, Rows<T> before, int64_t rows,
                           T beta) {
    Gemm(width, d.hidden, rows, Operand<T>{drecurrent, width, true},
         Operand<T>{before.data, before.stride}, beta, g.dw_hh, d.hidden);
  };
  const T* first = StepOf(d, g.drecurrent, d.Time(0), width);
  product(first, HiddenBefore(d, 0), d.batch, T(0));
  if (rest == 0) return;
  const T* later = StepOf(d, g.drecurrent, d.reversed ? 0 : 1, width);
  const T* y = StepOf(d, d.y, d.reversed ? 1 : 0, d.y_stride);
  product(later, {y, d.y_stride}, rest, T(1));
}

}  // namespace

template <typename T>
void RnnDirection<T>::Forward() const {
  Project(steps * batch, width(), Rows<T>{x, input}, input, w_ih, b_ih, false,
          gates);
  const bool lstm = cell == ops::RnnCell::kLstm;
  for (int64_t i = 0; i < steps; ++i)
    lstm ? LstmStep(*this, i) : GruStep(*this, i);
  const T* last = StepOf(*this, y, Time(steps - 1), y_stride);
  for (int64_t row = 0; row < batch; ++row)
    std::copy_n(last + row * y_stride, hidden, h_last + row * hidden);
  if (lstm) std::copy_n(CellsBefore(*this, steps), batch * hidden, c_last);
}

template <typename T>
void RnnDirectionGradients<T>::Backward(const RnnDirection<T>& d) const {
  for (int64_t i = d.steps - 1; i >= 0; --i) StepBackward(d, *this, i);
  const int64_t rows = d.steps * d.batch, width = d.width();
  Gemm(width, d.input, rows, Operand<T>{dgates, width, true},
       Operand<T>{d.x, d.input}, T(0), dw_ih, d.input);
  RecurrentWeights(d, *this);
  if (db_ih != nullptr) {
    SumRows(dgates, rows, width, db_ih);
    SumRows(drecurrent, rows, width, db_hh);
  }
  Gemm(rows, d.input, width, Operand<T>{dgates, width},
       Operand<T>{d.w_ih, d.input}, T(add_to_dx ? 1 : 0), dx, d.input);
}

template struct RnnDirection<float>;
template struct RnnDirection<double>;
template struct RnnDirectionGradients<float>;
template struct RnnDirectionGradients<double>;

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

// Recurrent layers, by PyTorch's formulas. T steps, N sequences, I features, H
// hidden ones; D is 2 when bidirectional, else 1.
namespace baton::ops {

// LSTM (4 gates: input, forget, cell, output):
//   i, f, o = sigmoid, g = tanh of W_ih x + b_ih + W_hh h + b_hh
//   c' = f c + i g,  h' = o tanh(c')
// GRU (3 gates: reset, update, new):
//   r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)
//   n = tanh(W_ih x + b_ih + r (W_hh h + b_hh)),  h' = (1 - z) n + z h
enum class RnnCell { kLstm, kGru };

inline int64_t GatesOf(RnnCell cell) { return cell == RnnCell::kLstm ? 4 : 3; }

struct RnnOptions {
  RnnCell cell = RnnCell::kLstm;
  int64_t layers = 1;
  bool bidirectional = false;
};

struct RnnInputs {
  Tensor x;  // [T, N, I]
  Tensor h;  // at first, [layers * D, N, H]; zeros where undefined
  Tensor c;  // the same for the LSTM's cells; undefined for the GRU
  // For each layer, and each direction of it, four: W_ih [gates * H, I, or D *
  // H above the first layer], W_hh [gates * H, H], b_ih and b_hh [gates * H].
  // The biases are all defined, or none.
  std::vector<Tensor> weights;
};

struct RnnResult {
  Tensor y;  // of the last layer, [T, N, D * H], the reverse direction behind
  Tensor h, c;  // at last, as in RnnInputs; c undefined for the GRU
  std::vector<Tensor> saved;  // for RnnBackward alone; empty unless kept
};

// Gradients of what RnnInputs has; those of undefined inputs are undefined.
struct RnnGradients {
  Tensor x, h, c;
  std::vector<Tensor> weights;
};

// All of one floating dtype; f16 and bf16 are summed in f32. `keep`:
// RnnBackward will be called.
RnnResult Rnn(const RnnInputs& inputs, const RnnOptions& options, bool keep);
// `dy`, `dh` and `dc` are gradients of the result; undefined ones are zero.
RnnGradients RnnBackward(const RnnInputs& inputs, const RnnResult& result,
                         const Tensor& dy, const Tensor& dh, const Tensor& dc,
                         const RnnOptions& options);

}  // namespace baton::ops

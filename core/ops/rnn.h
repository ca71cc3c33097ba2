// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

// Recurrent layers, by PyTorch's formulas. Shapes use T steps, N sequences, I
// input features, H hidden features, and D directions: 2 if bidirectional, else
// 1.
namespace baton::ops {

// LSTM (4 gates: input, forget, cell, output):
//   i, f, o = sigmoid, g = tanh of W_ih x + b_ih + W_hh h + b_hh
//   c' = f c + i g,  h' = o tanh(c')
// GRU (3 gates: reset, update, new):
//   r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)
//   n = tanh(W_ih x + b_ih + r (W_hh h + b_hh)),  h' = (1 - z) n + z h
enum class RnnCell { kLstm, kGru };

// Returns the number of gates.
inline int64_t GatesOf(RnnCell cell) { return cell == RnnCell::kLstm ? 4 : 3; }

struct RnnOptions {
  RnnCell cell = RnnCell::kLstm;
  int64_t layers = 1;
  bool bidirectional = false;
};

struct RnnInputs {
  Tensor x;  // [T, N, I]
  // The initial hidden and cell states, [layers * D, N, H]; undefined means
  // zeros. A GRU has no c.
  Tensor h, c;
  // Four for each direction of each layer: W_ih [gates * H, I], or [gates * H,
  // D * H] above the first layer, W_hh [gates * H, H], b_ih and b_hh [gates *
  // H]. Either all biases are defined or none.
  std::vector<Tensor> weights;
};

struct RnnResult {
  // [T, N, D * H]: the outputs of the last layer, forward direction first.
  Tensor y;
  Tensor h, c;                // the final states, as in RnnInputs
  std::vector<Tensor> saved;  // for RnnBackward; empty unless `keep`
};

// The gradients of the tensors in RnnInputs. The gradient of an undefined
// tensor is undefined.
struct RnnGradients {
  Tensor x, h, c;
  std::vector<Tensor> weights;
};

// Runs the layers on tensors of one floating dtype; f16 and bf16 are summed in
// f32. `keep` must be true if RnnBackward will be called.
RnnResult Rnn(const RnnInputs& inputs, const RnnOptions& options, bool keep);
// `dy`, `dh` and `dc` are the gradients of the result's tensors; undefined ones
// count as zero.
RnnGradients RnnBackward(const RnnInputs& inputs, const RnnResult& result,
                         const Tensor& dy, const Tensor& dh, const Tensor& dc,
                         const RnnOptions& options);

}  // namespace baton::ops

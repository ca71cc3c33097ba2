// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

// What ops tell kernels, of whichever device. Ops check arguments, then call
// the kernel of the tensors' device (core/ops/dispatch.h).
namespace baton {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum };

enum class CompareOp { kEqual, kLess, kLessEqual };

enum class UnaryOp { kNeg, kAbs, kExp, kLog, kSqrt };

enum class Activation { kRelu, kSigmoid, kTanh, kGelu };

// The greatest (or least) elements along `axis`, whose extent is not 0, and
// their first positions. `values` and `indices` have extent 1 there. NaN
// counts as both greatest and least.
enum class Extreme { kMax, kMin };

// out[.., index[.., i, ..], ..] = (or +=) source[.., i, ..], for equal indices
// in the order of i.
enum class ScatterMode { kAssign, kAdd };

// Means over windows: [start, end) of rows and columns for each output cell,
// divided by `divisor`; by the window's own size where that is 0.
struct Windows {
  std::vector<int64_t> row_start, row_end, column_start, column_end;
  int64_t divisor = 0;
};

// Coefficients as the element type sees them.
struct SgdCoefficients {
  double lr;
  double momentum;  // 0 on the first step
  double damped;    // factor of the gradient in the momentum
  double lookahead;
  double weight_decay;
  double sign;  // of the gradient
  bool nesterov;
};

struct AdamCoefficients {
  double keep;  // factor of the value: decoupled weight decay
  double step_size;
  double beta1;
  double beta2;
  double variance_scale;  // sqrt of the variance's bias correction
  double eps;
  double weight_decay;
  double sign;
};

}  // namespace baton

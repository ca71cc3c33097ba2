// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// What losses are told, and tell their kernels.
namespace baton {

// What becomes of the losses of elements or rows: they stay as they are, are
// added up, or averaged as each loss says. kBatchMean, the sum divided by the
// first extent, is for KL divergence alone.
enum class Reduction { kNone, kSum, kMean, kBatchMean };

// Of losses over classes. A mean is the sum divided by the sum of the weights
// of the labels that count; NaN where none does.
struct ClassLossOptions {
  Tensor weight = {};           // [C], of the logits' dtype; undefined: ones
  int64_t ignore_index = -100;  // rows of this label count nothing
  double label_smoothing =
      0;  // in [0, 1]: of a target, spread over all classes
  Reduction reduction = Reduction::kMean;
};

// Losses of one input x and one target t each, as PyTorch has them.
enum class PointLoss {
  kSquared,
  kL1,
  kSmoothL1,  // parameter: beta > 0
  kHuber,     // parameter: delta > 0
  kBinary,    // cross entropy of a probability x; logarithms end at -100
  kBinaryLogits,
  kKl,     // x is a logarithm
  kKlLog,  // t as well
};

// A loss itself, or its derivative by the input or the target.
enum class LossPart { kValue, kInputSlope, kTargetSlope };

}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/tensor.h"

// Options of losses, which the ops pass on to their kernels.
namespace baton {

// How the losses of elements or rows are reduced: not at all, to their sum, or
// to their mean as each loss defines it. kBatchMean, the sum divided by the
// first extent, is only for the KL divergence.
enum class Reduction { kNone, kSum, kMean, kBatchMean };

// Options of losses over classes. A mean is the sum of losses divided by the
// sum of the weights of all labels that are not ignored; it is NaN if there are
// none.
struct ClassLossOptions {
  Tensor weight = {};           // [C], of the logits' dtype; undefined: ones
  int64_t ignore_index = -100;  // rows with this label are ignored
  // The part of a target, in [0, 1], that is spread over all classes.
  double label_smoothing = 0;
  Reduction reduction = Reduction::kMean;
};

// Losses of one input x and one target t each; the formulas are PyTorch's.
enum class PointLoss {
  kSquared,
  kL1,
  kSmoothL1,  // parameter: beta > 0
  kHuber,     // parameter: delta > 0
  kBinary,    // cross entropy of a probability x; logarithms are at least -100
  kBinaryLogits,
  kKl,     // Kullback-Leibler divergence; x is a logarithm
  kKlLog,  // the same, and t is also a logarithm
};

// A loss itself, or its derivative by the input or the target.
enum class LossPart { kValue, kInputSlope, kTargetSlope };

}  // namespace baton

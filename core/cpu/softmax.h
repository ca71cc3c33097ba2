// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

// These work along the last axis of dense floating tensors of one shape.
namespace baton::cpu {

void Softmax(const Tensor& y, const Tensor& x);
void LogSoftmax(const Tensor& y, const Tensor& x);
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);

// Writes log_softmax [N, C] of the logits, and parts [2, N] (f64 for f64,
// otherwise f32): the loss of each row and its weight in a mean. labels [N] are
// dense, and each is in [0, C) or ignored. The options' weight [C] is dense.
void CrossEntropy(const Tensor& parts, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels,
                  const ClassLossOptions& options);
// dy is [1] or, with one element for each row, [N]; it is dense and has the
// logits' dtype. If `divisor` [] is defined, it has the dtype of parts and
// divides dy.
void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy,
                          const Tensor& divisor,
                          const ClassLossOptions& options);

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

// These work along the last axis of dense floating tensors of one shape, on a
// GPU.
namespace baton::cuda {

void Softmax(const Tensor& y, const Tensor& x);
void LogSoftmax(const Tensor& y, const Tensor& x);
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);

// Like core/cpu/softmax.h, but labels need not be in range: for a label that is
// not, the loss and the gradient of the row are NaN.
void CrossEntropy(const Tensor& parts, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels,
                  const ClassLossOptions& options);
void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy,
                          const Tensor& divisor,
                          const ClassLossOptions& options);

}  // namespace baton::cuda

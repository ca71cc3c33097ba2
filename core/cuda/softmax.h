// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/loss_args.h"
#include "core/tensor.h"

// Over the last axis of dense floating tensors of one shape, on a GPU.
namespace baton::cuda {

void Softmax(const Tensor& y, const Tensor& x);
void LogSoftmax(const Tensor& y, const Tensor& x);
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);

// As in core/cpu/softmax.h, but labels need not be in range: a row whose label
// is not has a loss, and a gradient, of NaN.
void CrossEntropy(const Tensor& parts, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels,
                  const ClassLossOptions& options);
void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy,
                          const Tensor& divisor,
                          const ClassLossOptions& options);

}  // namespace baton::cuda

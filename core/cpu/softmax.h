// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

// Over the last axis of dense floating tensors of one shape.
namespace baton::cpu {

void Softmax(const Tensor& y, const Tensor& x);
void LogSoftmax(const Tensor& y, const Tensor& x);
void SoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);
void LogSoftmaxBackward(const Tensor& dx, const Tensor& dy, const Tensor& y);

// log_softmax [N, C] of the logits, and loss [] = the mean of
// -log_softmax[i][labels[i]]; labels [N], dense, in [0, C).
void CrossEntropy(const Tensor& loss, const Tensor& log_softmax,
                  const Tensor& logits, const Tensor& labels);
// dx = dy / N * (exp(log_softmax) - one_hot(labels)).
void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, const Tensor& dy);

}  // namespace baton::cpu

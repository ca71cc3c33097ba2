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

// The mean of -log_softmax[i][labels[i]].
double MeanNegativeLogLikelihood(const Tensor& log_softmax,
                                 const Tensor& labels);
// dx = scale * (exp(log_softmax) - one_hot(labels)).
void CrossEntropyBackward(const Tensor& dx, const Tensor& log_softmax,
                          const Tensor& labels, double scale);

}  // namespace baton::cpu

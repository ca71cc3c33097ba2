// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/softmax.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void Softmax(const Tensor&, const Tensor&) { FailWithoutCuda("softmax"); }
void LogSoftmax(const Tensor&, const Tensor&) {
  FailWithoutCuda("log_softmax");
}
void SoftmaxBackward(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("softmax_backward");
}
void LogSoftmaxBackward(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("log_softmax_backward");
}
void CrossEntropy(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                  const ClassLossOptions&) {
  FailWithoutCuda("cross_entropy");
}
void CrossEntropyBackward(const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&, const Tensor&,
                          const ClassLossOptions&) {
  FailWithoutCuda("cross_entropy_backward");
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/activation.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void Activate(Activation, const Tensor&, const Tensor&) {
  FailWithoutCuda("activation");
}
void ActivateBackward(Activation, const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("activation_backward");
}
void LeakyRelu(const Tensor&, const Tensor&, double) {
  FailWithoutCuda("leaky_relu");
}
void LeakyReluBackward(const Tensor&, const Tensor&, const Tensor&, double) {
  FailWithoutCuda("leaky_relu_backward");
}
void MaskAndScale(const Tensor&, const Tensor&, const Tensor&, double) {
  FailWithoutCuda("dropout");
}

}  // namespace baton::cuda

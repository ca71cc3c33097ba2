// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

Tensor ConvForward(const Tensor&, const Tensor&, const Tensor&,
                   const ops::Conv2dOptions&) {
  FailWithoutCuda("conv2d");
}
Tensor ConvBackwardInput(const Tensor&, const Tensor&, const Shape&,
                         const ops::Conv2dOptions&) {
  FailWithoutCuda("conv2d_backward_input");
}
void ConvAddBackwardInput(const Tensor&, const Tensor&,
                          const ops::Conv2dOptions&, const Tensor&) {
  FailWithoutCuda("conv2d_backward_input");
}
Tensor ConvBackwardWeight(const Tensor&, const Tensor&, const Shape&,
                          const ops::Conv2dOptions&, MemoryFormat) {
  FailWithoutCuda("conv2d_backward_weight");
}

}  // namespace baton::cuda

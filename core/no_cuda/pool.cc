// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/pool.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

ops::MaxPool2dResult MaxPool(const Tensor&, const Shape&,
                             const ops::Pool2dOptions&) {
  FailWithoutCuda("max_pool2d");
}
Tensor MaxPoolBackward(const Tensor&, const Tensor&, const Shape&,
                       const ops::Pool2dOptions&) {
  FailWithoutCuda("max_pool2d_backward");
}
Tensor MeanPool(const Tensor&, const Windows&) { FailWithoutCuda("mean_pool"); }
Tensor MeanPoolBackward(const Tensor&, const Shape&, const Windows&,
                        MemoryFormat) {
  FailWithoutCuda("mean_pool_backward");
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/reduce.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void SumAxes(const Tensor&, const Tensor&, const std::vector<bool>&, double) {
  FailWithoutCuda("sum");
}
void FindExtremes(Extreme, const Tensor&, const Tensor&, const Tensor&, int) {
  FailWithoutCuda("extremes");
}
void MeanSquaredDifference(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("mse_loss");
}
void MeanSquaredDifferenceBackward(const Tensor&, const Tensor&, const Tensor&,
                                   const Tensor&) {
  FailWithoutCuda("mse_loss_backward");
}
void SumParts(const Tensor&, const Tensor&, double) { FailWithoutCuda("sum"); }

}  // namespace baton::cuda

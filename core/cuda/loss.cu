// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/arithmetic.cuh"
#include "core/cuda/loss.h"
#include "core/cuda/map.cuh"
#include "core/ops/point_loss_formula.h"

namespace baton::cuda {

// The kernel itself chooses the loss, because the choice takes less time than
// the memory accesses.
void ComputePointLoss(const Tensor& out, PointLoss loss, LossPart part,
                      const Tensor& x, const Tensor& target, double parameter) {
  const Launch launch("point_loss", {&out}, {&x, &target});
  VisitDeviceFloating("point_loss", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    using Formula = ops::PointLossFormula<C>;
    Map<T, T, T>(launch,
                 Computed<T, Formula>{{loss, part, static_cast<C>(parameter)}},
                 out, x, target);
  });
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/loss.h"

#include "core/cpu/map.h"
#include "core/dtype_visit.h"
#include "core/ops/point_loss_formula.h"

namespace baton::cpu {

void ComputePointLoss(const Tensor& out, PointLoss loss, LossPart part,
                      const Tensor& x, const Tensor& target, double parameter) {
  constexpr int64_t kCostly = 4096;  // elements, if each takes some nanoseconds
  VisitFloating("point_loss", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const ops::PointLossFormula<C> formula{loss, part, Convert<C>(parameter)};
    Map<T, T, T>(
        kCostly,
        [formula](T a, T b) {
          return Convert<T>(formula(Convert<C>(a), Convert<C>(b)));
        },
        out, x, target);
  });
}

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cmath>

#include "core/ops/loss_args.h"
#include "core/ops/step_rule.h"

namespace baton::ops {

// The formula that CPUs and GPUs compute for each element. C is float or
// double.
template <typename C>
struct PointLossFormula {
  PointLoss loss;
  LossPart part;
  C parameter;

  BATON_RULE C operator()(C x, C t) const {
    switch (part) {
      case LossPart::kValue:
        return Value(x, t);
      case LossPart::kInputSlope:
        return InputSlope(x, t);
      case LossPart::kTargetSlope:
        break;
    }
    return TargetSlope(x, t);
  }

 private:
  BATON_RULE C Value(C x, C t) const {
    const C distance = std::fabs(x - t);
    switch (loss) {
      case PointLoss::kSquared:
        return distance * distance;
      case PointLoss::kL1:
        return distance;
      case PointLoss::kSmoothL1:
        return distance < parameter ? C(0.5) * distance * distance / parameter
                                    : distance - C(0.5) * parameter;
      case PointLoss::kHuber:
        return distance <= parameter
                   ? C(0.5) * distance * distance
                   : parameter * (distance - C(0.5) * parameter);
      case PointLoss::kBinary:
        return (t - C(1)) * Floored(std::log1p(-x)) - t * Floored(std::log(x));
      case PointLoss::kBinaryLogits:
        return (C(1) - t) * x + std::log1p(std::exp(-std::fabs(x))) +
               (x < C(0) ? -x : C(0));
      case PointLoss::kKl:
        return (t == C(0) ? C(0) : t * std::log(t)) - t * x;
      case PointLoss::kKlLog:
        break;
    }
    return std::exp(t) * (t - x);
  }

  BATON_RULE C InputSlope(C x, C t) const {
    const C difference = x - t;
    switch (loss) {
      case PointLoss::kSquared:
        return C(2) * difference;
      case PointLoss::kL1:
        return Limited(difference, C(0), C(1), C(0));
      case PointLoss::kSmoothL1:
        return Limited(difference, parameter, C(1), difference / parameter);
      case PointLoss::kHuber:
        return Limited(difference, parameter, parameter, difference);
      case PointLoss::kBinary:
        return difference / Above(x * (C(1) - x));
      case PointLoss::kBinaryLogits:
        return C(1) / (C(1) + std::exp(-x)) - t;
      case PointLoss::kKl:
        return -t;
      case PointLoss::kKlLog:
        break;
    }
    return -std::exp(t);
  }

  BATON_RULE C TargetSlope(C x, C t) const {
    switch (loss) {
      case PointLoss::kBinary:
        return std::log1p(-x) - std::log(x);
      case PointLoss::kBinaryLogits:
        return -x;
      case PointLoss::kKl:
        return std::log(t) + C(1) - x;
      case PointLoss::kKlLog:
        return std::exp(t) * (t - x + C(1));
      default:
        return -InputSlope(x, t);
    }
  }

  // Returns `ends` if x > limit, -ends if x < -limit, and `inside` between.
  BATON_RULE static C Limited(C x, C limit, C ends, C inside) {
    return x > limit ? ends : x < -limit ? -ends : inside;
  }
  // These two bound x from below and keep NaN.
  BATON_RULE static C Floored(C x) { return x < C(-100) ? C(-100) : x; }
  BATON_RULE static C Above(C x) { return x < C(1e-12f) ? C(1e-12f) : x; }
};

}  // namespace baton::ops

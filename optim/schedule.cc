// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/status.h"

namespace baton::optim {

double StepLr(const StepLrOptions& options, int64_t steps) {
  Require(options.every > 0, "step_lr",
          "every is not positive: ", options.every);
  Require(steps >= 0, "step_lr", "steps are negative: ", steps);
  const int64_t decays = steps / options.every;
  return options.base * std::pow(options.factor, static_cast<double>(decays));
}

double CosineLr(const CosineLrOptions& options, int64_t steps) {
  constexpr double kPi = 3.14159265358979323846;
  Require(options.warmup >= 0 && options.total > options.warmup, "cosine_lr",
          "total ", options.total, " is not above warmup ", options.warmup);
  Require(steps >= 0, "cosine_lr", "steps are negative: ", steps);
  if (steps < options.warmup) {
    return options.base * static_cast<double>(steps + 1) /
           static_cast<double>(options.warmup);
  }
  const double done =
      std::min(1.0, static_cast<double>(steps - options.warmup) /
                        static_cast<double>(options.total - options.warmup));
  return options.floor +
         (options.base - options.floor) * (1 + std::cos(kPi * done)) / 2;
}

}  // namespace baton::optim

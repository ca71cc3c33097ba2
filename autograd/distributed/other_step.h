// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <limits>

#include "core/future.h"

namespace baton::dist {

// How a step treats values that no optimizer has, such as rows at parameter
// servers.
struct OtherStepSettings {
  double rate = 1;      // a factor of the values' own learning rate
  double gradient = 1;  // a factor of their gradients
  // Each element of a gradient is then clamped to [-limit, limit].
  double limit = std::numeric_limits<double>::infinity();
  // The values are not stepped, but whoever waits for the step hears of it.
  bool skip = false;
};

// Work that a step in a context does besides that of optimizers.
struct OtherStep {
  // Returns the square of the norm of the gradients that `step` would use now.
  std::function<double()> square_norm;
  std::function<Future<void>(const OtherStepSettings&)> step;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Steps by the signs of gradients (Riedmiller, Braun, 1993); meant for
// full-batch gradients. State: "prev", the previous gradient, and "step_size",
// which begins with the options' lr: setting a rate later, or a schedule, has
// no effect.
using RpropOptions = ops::RpropRule;
using Rprop = RuleOptimizer<RpropOptions>;

}  // namespace baton::optim

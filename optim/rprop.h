// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Steps by the signs of gradients (Riedmiller, Braun, 1993), for gradients of
// all data at once. State: "prev", the gradient before, and "step_size", which
// begins with the options' lr: a rate that is set later, or a schedule, changes
// nothing.
using RpropOptions = ops::RpropRule;
using Rprop = RuleOptimizer<RpropOptions>;

}  // namespace baton::optim

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Stochastic gradient descent with momentum, weight decay and Nesterov's
// variant. State: "momentum_buffer" where there is momentum.
using SgdOptions = ops::SgdRule;
using Sgd = RuleOptimizer<SgdOptions>;

}  // namespace baton::optim

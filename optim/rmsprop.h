// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// RMSprop (Hinton, 2012), optionally centered (Graves, 2013). State:
// "square_avg"; with momentum "momentum_buffer"; if centered "grad_avg".
using RmsPropOptions = ops::RmsPropRule;
using RmsProp = RuleOptimizer<RmsPropOptions>;

}  // namespace baton::optim

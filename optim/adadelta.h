// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adadelta (Zeiler, 2012). State: "square_avg" and "acc_delta", means of
// squared gradients and of squared steps.
using AdadeltaOptions = ops::AdadeltaRule;
using Adadelta = RuleOptimizer<AdadeltaOptions>;

}  // namespace baton::optim

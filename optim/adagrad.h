// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adagrad (Duchi, Hazan, Singer, 2011). State: "sum", of squared gradients.
using AdagradOptions = ops::AdagradRule;
using Adagrad = RuleOptimizer<AdagradOptions>;

}  // namespace baton::optim

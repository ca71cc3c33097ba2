// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adam with the maximum of gradients instead of their variance (Kingma, Ba,
// 2014). State: "exp_avg" and "exp_inf".
using AdamaxOptions = ops::AdamaxRule;
using Adamax = RuleOptimizer<AdamaxOptions>;

}  // namespace baton::optim

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adam that leaves the rows of an embedding alone, and what it keeps of them,
// where a gradient of rows does not name them. A dense gradient names all.
// State: "exp_avg", "exp_avg_sq".
using SparseAdamOptions = ops::SparseAdamRule;
using SparseAdam = RuleOptimizer<SparseAdamOptions>;

}  // namespace baton::optim

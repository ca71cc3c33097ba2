// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adam for embeddings: rows that a sparse gradient does not name keep their
// value and state. A dense gradient steps all rows. State: "exp_avg",
// "exp_avg_sq".
using SparseAdamOptions = ops::SparseAdamRule;
using SparseAdam = RuleOptimizer<SparseAdamOptions>;

}  // namespace baton::optim

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <variant>

#include "core/ops/adadelta_rule.h"
#include "core/ops/adagrad_rule.h"
#include "core/ops/adam_rule.h"
#include "core/ops/adamax_rule.h"
#include "core/ops/rmsprop_rule.h"
#include "core/ops/rprop_rule.h"
#include "core/ops/sgd_rule.h"
#include "core/ops/sparse_adam_rule.h"

namespace baton::ops {

// All rules that have kernels. A new rule must be added here.
using StepRule =
    std::variant<SgdRule, AdamRule, AdagradRule, RmsPropRule, SparseAdamRule,
                 AdadeltaRule, AdamaxRule, RpropRule>;

inline constexpr size_t kMaxStateSlots = 3;

}  // namespace baton::ops

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <tuple>

#include "optim/rule_optimizer.h"

namespace baton::optim {

// Adam (Kingma, Ba, 2015), with the AMSGrad variant. Weight decay is added to
// the gradient. State: "exp_avg", "exp_avg_sq" and, with AMSGrad,
// "max_exp_avg_sq".
using AdamOptions = ops::AdamRule;
using Adam = RuleOptimizer<AdamOptions>;

// Adam whose weight decay shrinks the parameter itself (Loshchilov, Hutter,
// 2019).
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;

  static constexpr auto Fields() {
    using O = AdamWOptions;
    return std::tuple{&O::lr,           &O::beta1,   &O::beta2,   &O::eps,
                      &O::weight_decay, &O::amsgrad, &O::maximize};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): they are such a rule
  operator ops::AdamRule() const {
    return {lr,           beta1,   beta2,    eps,
            weight_decay, amsgrad, maximize, /*decoupled_weight_decay=*/true};
  }
};
using AdamW = RuleOptimizer<AdamWOptions>;

}  // namespace baton::optim

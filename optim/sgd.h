// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/optimizer.h"
#include "optim/optimizer.h"

namespace baton::optim {

using SgdOptions = ops::SgdOptions;

// Stochastic gradient descent with momentum, weight decay and Nesterov's
// variant. State: "momentum_buffer" where there is momentum.
// Thread-compatible.
class Sgd final : public Optimizer {
 public:
  // Throws Error on options out of range: negative lr, momentum or weight
  // decay, or Nesterov without momentum or with dampening.
  Sgd(std::vector<Variable> parameters, const SgdOptions& options);

 protected:
  void Apply(const std::vector<Update>& updates) override;

 private:
  SgdOptions options_;  // but for lr, which may change
};

}  // namespace baton::optim

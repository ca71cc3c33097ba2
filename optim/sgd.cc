// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/sgd.h"

#include <string>
#include <utility>

#include "core/status.h"

namespace baton::optim {

Sgd::Sgd(std::vector<Variable> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters),
                options.momentum != 0
                    ? std::vector<std::string>{"momentum_buffer"}
                    : std::vector<std::string>{},
                options.lr),
      options_(options) {
  Require(options.lr >= 0, "sgd", "lr is negative: ", options.lr);
  Require(options.momentum >= 0, "sgd",
          "momentum is negative: ", options.momentum);
  Require(options.weight_decay >= 0, "sgd",
          "weight_decay is negative: ", options.weight_decay);
  Require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "sgd", "nesterov needs momentum and no dampening");
}

void Sgd::Apply(const std::vector<Update>& updates) {
  std::vector<ops::SgdTarget> targets;
  for (const Update& update : updates) {
    targets.push_back(
        {.value = update.value,
         .grad = update.grad,
         .momentum = options_.momentum != 0 ? update.state[0] : Tensor(),
         .first_step = update.first_step,
         .lowered = update.lowered,
         .rate = update.rate,
         .count = update.count,
         .skip = update.skip});
  }
  SgdOptions options = options_;
  options.lr = lr();
  ops::SgdStep(targets, options);
}

}  // namespace baton::optim

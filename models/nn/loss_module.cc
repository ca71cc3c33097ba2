// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/loss_module.h"

#include <utility>

#include "core/status.h"

namespace baton::nn {

Variable LossModule::Forward(const Variable&) {
  Fail("loss_module", "a loss takes outputs and targets: call Loss");
}

Variable LossModule::Loss(const Variable&, const Tensor&) {
  Fail("loss_module", "the loss takes several outputs: call LossOfAll");
}

Variable LossModule::LossOfAll(const std::vector<Variable>& outputs,
                               const Tensor& targets) {
  Require(outputs.size() == 1, "loss_module", "the loss takes one output, got ",
          outputs.size());
  return Loss(outputs.front(), targets);
}

WithLoss::WithLoss(std::shared_ptr<Module> module,
                   std::shared_ptr<LossModule> loss)
    : module_(*module) {
  To(module_.device());  // before children are registered, which it would move
  RegisterModule("module", std::move(module));
  RegisterModule("loss", std::move(loss));
}

std::vector<Variable> WithLoss::ForwardAll(
    const std::vector<Variable>& values) {
  return module_(module_.Placed(values));
}

}  // namespace baton::nn

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/loss_module.h"

#include "core/status.h"

namespace baton::nn {

Variable LossModule::Forward(const Variable&) {
  Fail("loss_module", "a loss takes outputs and targets: call Loss");
}

}  // namespace baton::nn

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/registry.h"

#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace baton::dist {

void RegisterOptimizers(rpc::Registry& registry) {
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterOptimizer<optim::Adam>(registry);
  RegisterOptimizer<optim::AdamW>(registry);
  RegisterOptimizer<optim::Adagrad>(registry);
  RegisterOptimizer<optim::RmsProp>(registry);
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/registry.h"

#include "optim/any.h"
#include "optim/distributed/optimizer.h"
#include "optim/kinds.h"

namespace baton::dist {

void RegisterOptimizers(rpc::Registry& registry) {
  RegisterOptimizer<optim::Any>(registry);
  optim::ForEachKind([&](const auto& kind) {
    using Kind = std::decay_t<decltype(kind)>;
    RegisterOptimizer<typename Kind::Optimizer>(registry);
  });
}

}  // namespace baton::dist

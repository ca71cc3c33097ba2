// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/registry.h"

namespace baton::dist {

// Calls RegisterOptimizer for every kind in optim/kinds.h and for optim::Any.
void RegisterOptimizers(rpc::Registry& registry);

}  // namespace baton::dist

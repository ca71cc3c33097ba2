// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/plugin/stays.h"

#include "rpc/plugin.h"

namespace baton::plugin {

void AddStay(rpc::Registry& registry) { registry.AddFunction<&Stay>(); }

}  // namespace baton::plugin

BATON_PLUGIN("stays", baton::plugin::AddStay);

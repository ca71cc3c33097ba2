// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/plugin.h"

namespace baton::plugin {

void NobodyHasThis(rpc::Registry& registry);

}  // namespace baton::plugin

BATON_PLUGIN("missing_symbol", baton::plugin::NobodyHasThis);

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::rpc::internal {

// What can be wrong with an agent before it is known who it is and who else
// there is: InvalidArgument for its threads and its lease, the registry's own
// status.
absl::Status CheckAgent(const AgentOptions& options, const Registry& registry);

}  // namespace baton::rpc::internal

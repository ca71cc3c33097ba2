// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::rpc::internal {

// Checks what can be checked before the agent meets other workers: returns
// InvalidArgument for the number of threads and the lease, or the registry's
// own status.
absl::Status CheckAgent(const AgentOptions& options, const Registry& registry);

}  // namespace baton::rpc::internal

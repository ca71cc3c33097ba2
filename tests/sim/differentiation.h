// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::sim {

void RegisterDifferentiation(rpc::Registry& registry);

// Computes a value through two workers, one after the other, in a context of
// its own, and its gradient back through both. Fails the run where the gradient
// is wrong; errors of calls are none. Waits for it.
void Differentiate(rpc::Agent& agent, const std::string& first,
                   const std::string& second, const rpc::CallOptions& options);

}  // namespace baton::sim

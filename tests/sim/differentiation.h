// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::sim {

void RegisterDifferentiation(rpc::Registry& registry);

// Computes a value through two workers, one after the other, in its own
// context, and its gradient back through both. Fails the run if the gradient is
// wrong, but not if a call fails. Waits for the result.
void Differentiate(rpc::Agent& agent, const std::string& first,
                   const std::string& second, const rpc::CallOptions& options);

}  // namespace baton::sim

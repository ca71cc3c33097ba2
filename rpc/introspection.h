// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rpc/call_context.h"
#include "rpc/debug_info.h"
#include "rpc/registry.h"

namespace baton::rpc {

// What every agent answers without being asked to register it; for batonctl:
//   agent.Async<&rpc::Introspection::Describe>("bob")
// Stateless.
struct Introspection {
  static DebugInfo Describe(CallContext& call);
  static std::vector<WorkerInfo> Workers(CallContext& call);
};

// What every agent answers, and nothing else.
void RegisterIntrospection(Registry& registry);

// GrpcOptions::observer_digest of every worker, and the digest of who only asks
// the above.
std::string ObserverDigest();

}  // namespace baton::rpc

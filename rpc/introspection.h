// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rpc/call_context.h"
#include "rpc/debug_info.h"

namespace baton::rpc {

// What every agent answers without being asked to register it; for batonctl:
//   agent.Async<&rpc::Introspection::Describe>("bob")
// Stateless.
struct Introspection {
  static DebugInfo Describe(CallContext& call);
  static std::vector<WorkerInfo> Workers(CallContext& call);
};

}  // namespace baton::rpc

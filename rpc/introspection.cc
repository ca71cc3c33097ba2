// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/introspection.h"

#include "rpc/agent.h"

namespace baton::rpc {

DebugInfo Introspection::Describe(CallContext& call) {
  return call.agent().GetDebugInfo();
}

std::vector<WorkerInfo> Introspection::Workers(CallContext& call) {
  return call.agent().workers();
}

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/introspection.h"

#include "absl/strings/str_cat.h"
#include "rpc/agent.h"

namespace baton::rpc {

DebugInfo Introspection::Describe(CallContext& call) {
  return call.agent().GetDebugInfo();
}

std::vector<WorkerInfo> Introspection::Workers(CallContext& call) {
  return call.agent().workers();
}

void RegisterIntrospection(Registry& registry) {
  registry.AddFunction<&Introspection::Describe>()
      .AddFunction<&Introspection::Workers>();
}

std::string ObserverDigest() {
  Registry registry;
  RegisterIntrospection(registry);
  return absl::StrCat("observer ", absl::Hex(registry.Digest()));
}

}  // namespace baton::rpc

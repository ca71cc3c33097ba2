// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/introspection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rpc/agent.h"

namespace baton::rpc {

DebugInfo Introspection::Describe(CallContext& call) {
  return call.agent().GetDebugInfo();
}

std::vector<WorkerInfo> Introspection::Workers(CallContext& call) {
  return call.agent().workers();
}

int64_t Introspection::Clock() { return Tracer::Now(); }

void Introspection::StartTrace(CallContext& call, int64_t limit,
                               std::chrono::milliseconds longest) {
  constexpr int64_t kMostEvents = 1'000'000;
  longest = std::clamp<std::chrono::milliseconds>(
      longest, std::chrono::milliseconds(0), std::chrono::hours(1));
  call.agent().tracer()->Start(
      static_cast<size_t>(std::clamp<int64_t>(limit, 0, kMostEvents)),
      Tracer::Clock::now() + longest);
}

TraceLog Introspection::TakeTrace(CallContext& call) {
  return call.agent().tracer()->Take();
}

void RegisterIntrospection(Registry& registry) {
  registry.AddFunction<&Introspection::Describe>()
      .AddFunction<&Introspection::Workers>()
      .AddFunction<&Introspection::Clock>()
      .AddFunction<&Introspection::StartTrace>()
      .AddFunction<&Introspection::TakeTrace>();
}

std::string ObserverDigest() {
  Registry registry;
  RegisterIntrospection(registry);
  return absl::StrCat("observer ", absl::Hex(registry.Digest()));
}

}  // namespace baton::rpc

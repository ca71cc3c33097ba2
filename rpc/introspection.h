// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rpc/call_context.h"
#include "rpc/debug_info.h"
#include "rpc/registry.h"
#include "rpc/tracer.h"

namespace baton::rpc {

// What every agent answers without being asked to register it; for batonctl:
//   agent.Async<&rpc::Introspection::Describe>("bob")
// Stateless.
struct Introspection {
  static DebugInfo Describe(CallContext& call);
  static std::vector<WorkerInfo> Workers(CallContext& call);
  // Nanoseconds of the steady clock, to set traces of several workers side by
  // side.
  static int64_t Clock();
  // Begins a trace that ends by itself after `longest`, and ends it.
  static void StartTrace(CallContext& call, int64_t limit,
                         std::chrono::milliseconds longest);
  static TraceLog TakeTrace(CallContext& call);
};

// Of who only looks: more than any worker's.
inline constexpr Rank kObserverRank{1 << 30};

// What every agent answers, and nothing else.
void RegisterIntrospection(Registry& registry);

// GrpcOptions::observer_digest of every worker, and the digest of who only asks
// the above.
std::string ObserverDigest();

}  // namespace baton::rpc

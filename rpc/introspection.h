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

// Functions that every agent registers by itself, for batonctl:
//   agent.Async<&rpc::Introspection::Describe>("bob")
// Stateless.
struct Introspection {
  static DebugInfo Describe(CallContext& call);
  static std::vector<WorkerInfo> Workers(CallContext& call);
  // Nanoseconds of the steady clock, to align the traces of several workers.
  static int64_t Clock();
  // StartTrace begins a trace, which ends by itself after `longest`; TakeTrace
  // ends it and returns it.
  static void StartTrace(CallContext& call, int64_t limit,
                         std::chrono::milliseconds longest);
  static TraceLog TakeTrace(CallContext& call);
};

// The rank of an observer, such as batonctl: larger than any worker's.
inline constexpr Rank kObserverRank{1 << 30};

// Registers the functions of Introspection and nothing else.
void RegisterIntrospection(Registry& registry);

// The digest of a registry with only these functions:
// GrpcOptions::observer_digest of every worker, and the registry digest of an
// observer.
std::string ObserverDigest();

}  // namespace baton::rpc

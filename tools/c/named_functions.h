// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/tensor.h"
#include "rpc/agent.h"
#include "rpc/call_options.h"
#include "rpc/registry.h"

// Functions of tensors that are called by a name instead of a type, which other
// languages have none of: what is behind tools/c/baton.h.
namespace baton::c {

// Runs on the agent's threads, several calls at a time.
using NamedFunction = std::function<absl::StatusOr<std::vector<Tensor>>(
    const std::vector<Tensor>& inputs)>;
using NamedFunctions = std::map<std::string, NamedFunction>;

// Every worker's registry needs it, and nothing else: so all of a cluster are
// programs of tools/c/baton.h.
void RegisterNamedFunctions(rpc::Registry& registry);

// What others may call here. Call it before the agent serves calls:
//   options.on_start = [&](rpc::Agent& agent) {
//     AttachNamedFunctions(agent, functions);
//   };
void AttachNamedFunctions(rpc::Agent& agent, NamedFunctions functions);

// NotFound for a name that `to` does not offer.
Future<std::vector<Tensor>> CallNamed(rpc::Agent& agent, const rpc::Target& to,
                                      const std::string& name,
                                      const std::vector<Tensor>& inputs,
                                      const rpc::CallOptions& options = {});

}  // namespace baton::c

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

// Functions of tensors that are called by a name instead of a C++ type, for
// other languages: the implementation of tools/c/baton.h.
namespace baton::c {

// Runs on the agent's threads, several calls at a time.
using NamedFunction = std::function<absl::StatusOr<std::vector<Tensor>>(
    const std::vector<Tensor>& inputs)>;
using NamedFunctions = std::map<std::string, NamedFunction>;

// Every worker's registry needs this and must contain nothing else, so all
// workers of such a cluster use tools/c/baton.h.
void RegisterNamedFunctions(rpc::Registry& registry);

// Offers these functions to other workers. Call it before the agent serves
// calls:
//   options.on_start = [&](rpc::Agent& agent) {
//     AttachNamedFunctions(agent, functions);
//   };
void AttachNamedFunctions(rpc::Agent& agent, NamedFunctions functions);

// Returns NotFound for a name that `to` does not offer.
Future<std::vector<Tensor>> CallNamed(rpc::Agent& agent, const rpc::Target& to,
                                      const std::string& name,
                                      const std::vector<Tensor>& inputs,
                                      const rpc::CallOptions& options = {});

}  // namespace baton::c

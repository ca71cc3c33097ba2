// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/c/named_functions.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rpc/call_context.h"

namespace baton::c {
namespace {

absl::StatusOr<std::vector<Tensor>> RunNamed(
    rpc::CallContext& call, const std::string& name,
    const std::vector<Tensor>& inputs) {
  const auto functions = call.agent().service<NamedFunctions>();
  const std::string& self = call.agent().self().name;
  if (functions == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        self, " offers no functions by name: call c::AttachNamedFunctions"));
  }
  const auto found = functions->find(name);
  if (found == functions->end()) {
    return absl::NotFoundError(
        absl::StrCat(self, " offers no function named '", name, "'"));
  }
  return found->second(inputs);
}

}  // namespace

void RegisterNamedFunctions(rpc::Registry& registry) {
  registry.AddFunction<&RunNamed>();
}

void AttachNamedFunctions(rpc::Agent& agent, NamedFunctions functions) {
  agent.SetService(std::make_shared<NamedFunctions>(std::move(functions)));
}

Future<std::vector<Tensor>> CallNamed(rpc::Agent& agent, const rpc::Target& to,
                                      const std::string& name,
                                      const std::vector<Tensor>& inputs,
                                      const rpc::CallOptions& options) {
  return agent.Async<&RunNamed>(to, options, name, inputs);
}

}  // namespace baton::c

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/parameter_list.h"
#include "autograd/hooks.h"
#include "rpc/agent.h"
#include "rpc/unregistered.h"

// Hooks on parameters at other workers. A hook is a function that every
// worker's registry has, because code is not sent:
//
//   Tensor Clip(const Tensor& gradient);
//   dist::RegisterGradientHook<&Clip>(registry);
//   ...
//   ASSIGN_OR_RETURN(auto hooks, dist::AddGradientHook<&Clip>(
//                                    agent, front.ref()).Await());
//   RETURN_IF_ERROR(hooks.Async<&dist::RemoteHooks::Remove>().Await());
namespace baton::dist {

// Hooks at this worker; the destructor does not remove them. Thread-safe.
class RemoteHooks {
 public:
  explicit RemoteHooks(std::vector<autograd::HookHandle> hooks)
      : hooks_(std::move(hooks)) {}
  void Remove() const {
    for (const autograd::HookHandle& hook : hooks_) hook.Remove();
  }
  using Exports = rpc::Methods<&RemoteHooks::Remove>;

 private:
  const std::vector<autograd::HookHandle> hooks_;
};

namespace hook_calls {

// Adds the hook; errors name it by its function.
template <auto kHook>
absl::StatusOr<std::shared_ptr<RemoteHooks>> AddToGradients(
    const RRef<ParameterList>& parameters) {
  ASSIGN_OR_RETURN(auto list, parameters.LocalValue());
  std::vector<autograd::HookHandle> hooks;
  for (Variable parameter : list->parameters) {
    hooks.push_back(
        parameter.AddHook(kHook, rpc::internal::FunctionName<kHook>()));
  }
  return std::make_shared<RemoteHooks>(std::move(hooks));
}

}  // namespace hook_calls

// kHook is Tensor(const Tensor& gradient), as for Variable::AddHook. It may run
// on several threads at once.
template <auto kHook>
void RegisterGradientHook(rpc::Registry& registry) {
  registry.AddFunction<&hook_calls::AddToGradients<kHook>>();
}

// Adds the hook to the gradient of each parameter; all must require grad.
template <auto kHook>
Future<RRef<RemoteHooks>> AddGradientHook(rpc::Agent& agent,
                                          const ParameterSource& parameters) {
  return parameters.Listed(agent).Then([&agent, owner = parameters.owner()](
                                           const RRef<ParameterList>& list) {
    const std::string hook = rpc::internal::FunctionName<kHook>();
    return rpc::OrNameMissing(
        rpc::CreateBy<&hook_calls::AddToGradients<kHook>>(agent, owner, list),
        hook,
        absl::StrCat("call dist::RegisterGradientHook<&", hook,
                     ">(registry) before joining"));
  });
}

}  // namespace baton::dist

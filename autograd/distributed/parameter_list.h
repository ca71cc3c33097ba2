// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/distributed/codec_variable.h"
#include "rpc/agent.h"

namespace baton::dist {

// The parameters of one object, at the worker where they live. Stays there.
// Immutable.
struct ParameterList {
  std::vector<Variable> parameters;
};

// What an optimizer asks the owner of `object` for; M has Parameters(), as
// nn::Module does, or is Variable. Registered by dist::RegisterParameters<M>.
template <typename M>
absl::StatusOr<std::unique_ptr<ParameterList>> ListParameters(
    const RRef<M>& object) {
  ASSIGN_OR_RETURN(std::shared_ptr<M> local, object.LocalValue());
  if constexpr (std::is_same_v<M, Variable>) {
    return std::make_unique<ParameterList>(
        ParameterList{std::vector<Variable>{*local}});
  } else {
    return std::make_unique<ParameterList>(ParameterList{local->Parameters()});
  }
}

template <typename M>
void RegisterParameters(rpc::Registry& registry) {
  registry.AddFunction<&ListParameters<M>>();
}

// Names, from anywhere, the parameters behind a handle.
class ParameterSource {
 public:
  template <typename M>
  // NOLINTNEXTLINE(google-explicit-constructor): a handle is such a source
  ParameterSource(const RRef<M>& object)
      : owner_(object.owner()), list_([object](rpc::Agent& agent) {
          return agent.Remote<&ListParameters<M>>(object.owner(), object);
        }) {}

  const rpc::WorkerInfo& owner() const { return owner_; }
  RRef<ParameterList> List(rpc::Agent& agent) const { return list_(agent); }

 private:
  rpc::WorkerInfo owner_;
  std::function<RRef<ParameterList>(rpc::Agent&)> list_;
};

}  // namespace baton::dist

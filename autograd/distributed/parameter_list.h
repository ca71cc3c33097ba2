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

// The parameters of one object, at the worker where they live, and the object's
// lock. Stays there. Immutable.
struct ParameterList {
  std::vector<Variable> parameters;
  std::shared_ptr<rpc::ObjectLock> lock;
};

// What an optimizer asks the owner of `object` for; M has Parameters(), as
// nn::Module does, or is Variable. Registered by dist::RegisterParameters<M>.
template <typename M>
Future<std::shared_ptr<ParameterList>> ListParameters(rpc::CallContext& call,
                                                      const RRef<M>& object) {
  auto lock = object.LocalLock();
  if (!lock.ok()) {
    return ReadyFuture<std::shared_ptr<ParameterList>>(lock.status());
  }
  return object.With(call, rpc::Access::kShared, [lock = *lock](M& local) {
    std::vector<Variable> parameters;
    if constexpr (std::is_same_v<M, Variable>) {
      parameters.push_back(local);
    } else {
      parameters = local.Parameters();
    }
    return std::make_shared<ParameterList>(
        ParameterList{std::move(parameters), lock});
  });
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

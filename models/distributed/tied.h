// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "core/future.h"
#include "core/status.h"
#include "core/tensor.h"
#include "models/distributed/module.h"
#include "rpc/agent.h"

namespace baton::dist {

// What TiedPair asks the owner of a module; the parameter's name is as in
// NamedParameters.
namespace tied_calls {

template <typename M>
absl::StatusOr<Variable> ParameterOf(const M& module, const std::string& name) {
  for (const auto& parameter : module.NamedParameters()) {
    if (parameter.name == name) return parameter.value;
  }
  return absl::NotFoundError(
      absl::StrCat("the module has no parameter '", name, "'"));
}

// A parameter of a module that is here, and the gradients of the call's
// context.
struct Found {
  Variable parameter;
  std::shared_ptr<ContextState> context;
};
template <typename M>
absl::StatusOr<Found> Find(rpc::CallContext& call, const RRef<M>& module,
                           const std::string& name) {
  ASSIGN_OR_RETURN(const std::shared_ptr<M> local, module.LocalValue());
  ASSIGN_OR_RETURN(Variable parameter, ParameterOf(*local, name));
  ASSIGN_OR_RETURN(auto context, ContextOf(call));
  return Found{std::move(parameter), std::move(context)};
}

// Undefined where none came. Adding to it later leaves what was given as it is.
template <typename M>
absl::StatusOr<Tensor> Gradient(rpc::CallContext& call, const RRef<M>& module,
                                const std::string& name) {
  ASSIGN_OR_RETURN(const Found found, Find(call, module, name));
  return found.context->GradientOf(found.parameter).Dense();
}

template <typename M>
Future<void> AddGradient(rpc::CallContext& call, const RRef<M>& module,
                         const std::string& name,
                         const rpc::ValueOrRRef<Tensor>& gradient) {
  absl::StatusOr<Found> found = Find(call, module, name);
  if (!found.ok()) return ReadyFuture<void>(found.status());
  return gradient.Fetch(call).Then([found = *found](const Tensor& here) {
    if (!here.defined()) return;
    found.context->Accumulate(found.parameter,
                              here.To(found.parameter.tensor().device()));
  });
}

}  // namespace tied_calls

// Every worker's registry needs it for modules M that a TiedPair names.
template <typename M>
void RegisterTied(rpc::Registry& registry) {
  registry.AddFunction<&tied_calls::Gradient<M>>();
  registry.AddFunction<&tied_calls::AddGradient<M>>();
}

// A parameter that two modules have, each a copy of its own that started as the
// other did: a language model's embedding, and its head in another stage.
//
//   const dist::TiedPair tokens(agent, front, back, "tokens.weight");
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(ctx, ids, targets));
//   RETURN_IF_ERROR(tokens.SumGradients(ctx));
//   RETURN_IF_ERROR(adam.Step(ctx));
//
// Equal gradients and one optimizer keep the copies equal, bit for bit. Must
// not outlive the agent. Thread-safe.
template <typename A, typename B>
class TiedPair {
 public:
  TiedPair(rpc::Agent& agent, const Module<A>& a, const Module<B>& b,
           std::string name)
      : agent_(&agent), a_(a.ref()), b_(b.ref()), name_(std::move(name)) {}

  // Gives both the sum of their gradients in `ctx`; once a backward. Large ones
  // go from worker to worker. Errors name the worker.
  absl::Status SumGradients(const Context& ctx) const {
    auto of_a = agent_->AsyncOrRemote<&tied_calls::Gradient<A>>(a_.owner(), ctx,
                                                                a_, name_);
    auto of_b = agent_->AsyncOrRemote<&tied_calls::Gradient<B>>(b_.owner(), ctx,
                                                                b_, name_);
    // Neither is added to before both are there.
    ASSIGN_OR_RETURN(const rpc::ValueOrRRef<Tensor> from_a, of_a.Await());
    ASSIGN_OR_RETURN(const rpc::ValueOrRRef<Tensor> from_b, of_b.Await());
    Future<void> to_a = agent_->Async<&tied_calls::AddGradient<A>>(
        a_.owner(), ctx, a_, name_, from_b);
    Future<void> to_b = agent_->Async<&tied_calls::AddGradient<B>>(
        b_.owner(), ctx, b_, name_, from_a);
    const absl::Status first = to_a.Await();
    const absl::Status second = to_b.Await();
    return first.ok() ? second : first;
  }

 private:
  rpc::Agent* agent_;
  RRef<A> a_;
  RRef<B> b_;
  std::string name_;
};

}  // namespace baton::dist

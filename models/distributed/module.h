// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/parameter_list.h"
#include "autograd/distributed/remote_hooks.h"
#include "models/distributed/module_calls.h"
#include "models/nn/graphed.h"
#include "models/nn/module.h"
#include "rpc/agent.h"
#include "rpc/unregistered.h"

namespace baton::dist {

// The result of a module at another worker, as Module::Forward returns it; it
// is fetched only when its value is needed here.
class Output final : public ValueSource<Variable> {
 public:
  using Answer = Future<rpc::ValueOrRRef<Variable>>;
  // Fetches the value by a call in `ctx`.
  static Future<Variable> Of(const Context& ctx, Answer answer);
  // Returns the answer behind a future that Of returned in `ctx`; an invalid
  // one for any other future.
  static Answer AnswerBehind(const Context& ctx,
                             const Future<Variable>& output);

  // Returns an answer that is x: a Tensor, a Variable or a Future of one.
  template <typename X>
  static Answer AnswerOf(const X& x) {
    const auto answer = [](const auto& value) {
      rpc::ValueOrRRef<Variable> made;
      made.value = Variable(value);
      return made;
    };
    if constexpr (requires { x.Then(answer); }) {
      return x.Then(answer);
    } else {
      return ReadyFuture<rpc::ValueOrRRef<Variable>>(answer(x));
    }
  }

  Output(std::shared_ptr<rpc::CallScope> scope, Answer answer)
      : scope_(std::move(scope)), answer_(std::move(answer)) {}
  Future<Variable> Bring() override;

 private:
  const std::shared_ptr<rpc::CallScope> scope_;
  const Answer answer_;
};

// Registers M, an nn::Module with Exports, with everything that dist::Module,
// dist::Pipeline and dist::Optimizer need. Every worker's registry needs this.
template <typename M>
void RegisterModule(rpc::Registry& registry) {
  static_assert(std::is_base_of_v<nn::Module, M>,
                "the class is no nn::Module; registry.Add<T>() takes any class "
                "with Exports");
  static_assert(rpc::internal::CanBeMade<M>,
                "the module cannot be made from afar: list a constructor in "
                "its Exports, `rpc::kConstructor<int64_t, int64_t>`");
  module_calls::WithParametersOfMake<M>([&]<typename... P>() {
    registry.AddFunction<&module_calls::Make<M, P...>>();
  });
  registry.Add<M>()
      .template AddFunction<&module_calls::ForwardOf<M>>()
      .template AddFunction<&module_calls::MakeReplayed<M>>()
      .template AddFunction<&module_calls::To<M>>()
      .template AddFunction<&module_calls::SetTraining<M>>()
      .template AddFunction<&module_calls::NumParameters<M>>()
      .template AddFunction<&module_calls::StateDict<M>>()
      .template AddFunction<&module_calls::LoadStateDict<M>>()
      .template AddFunction<&module_calls::Hold<M>>()
      .template AddFunction<&module_calls::MakeStage<M>>();
  RegisterParameters<M>(registry);
}

// Allows AddHook<kHook> for a remote M. kHook is an nn::Module::ForwardPreHook,
// ForwardHook or BackwardHook, or one that takes all values (ForwardAllPreHook,
// ...). Every worker's registry needs this.
template <typename M, auto kHook>
void RegisterModuleHook(rpc::Registry& registry) {
  registry.AddFunction<&module_calls::Hooking<M, kHook>::AddHook>();
}

// A module that lives at a worker, used from here. M exports a constructor, or
// Make, and Forward:
//
//   ASSIGN_OR_RETURN(auto front, dist::Module<Front>::Create(agent, "bob",
//   spec)
//                                    .Await());
//   Future<Variable> hidden = front.Forward(ctx, images);
//
// Copyable handle; must not outlive the agent. Thread-safe.
template <typename M>
class Module {
 public:
  Module() = default;  // refers to no module
  Module(rpc::Agent& agent, RRef<M> module)
      : agent_(&agent), module_(std::move(module)) {}

  // Makes a module at the worker from `args`, as rpc::Create does, on the
  // worker's own device.
  template <typename... Args>
  static Future<Module> Create(rpc::Agent& agent, const rpc::Target& worker,
                               Args&&... args) {
    return Create(agent, worker, Placement{}, std::forward<Args>(args)...);
  }
  // As above, on the device that `placement` names:
  //   Create(agent, "bob", dist::Placement{.device = Device::Cpu()}, spec)
  template <typename... Args>
  static Future<Module> Create(rpc::Agent& agent, const rpc::Target& worker,
                               Placement placement, Args&&... args) {
    return module_calls::WithParametersOfMake<M>([&]<typename... P>() {
             return rpc::OrNameMissing(
                 rpc::CreateBy<&module_calls::Make<M, P...>>(
                     agent, worker, placement, std::forward<Args>(args)...),
                 rpc::internal::TypeName<M>(), Lines());
           })
        .Then([&agent](const RRef<M>& rref) { return Module(agent, rref); });
  }

  // Runs the module; the call is recorded in `ctx`. x is moved to the module's
  // device and dtype, wherever it is. X is Variable, Tensor or a Future of one;
  // the call is sent once the future's value is there. A result of more than 64
  // KiB stays with the module's worker until somebody here waits for it: if it
  // is passed to another module's Forward, it goes directly from worker to
  // worker.
  template <typename X>
  Future<Variable> Forward(const Context& ctx, const X& x) const {
    Output::Answer input;
    if constexpr (std::is_same_v<X, Future<Variable>>)
      input = Output::AnswerBehind(ctx, x);
    if (!input.valid() && replayed_.has_value()) input = Output::AnswerOf(x);
    if (!input.valid()) {
      return Output::Of(ctx,
                        module_.template AsyncOrRemote<&M::Forward>(ctx, x));
    }
    return Output::Of(ctx, agent_->AsyncOrRemote<&module_calls::ForwardOf<M>>(
                               rpc::Target(owner(), rpc::Place()), ctx, module_,
                               replayed_, input));
  }

  // Returns a handle of the same module whose Forward replays two graphs on a
  // GPU, one of the module's forward and one of its backward, as nn::Graphed
  // does; `options` is for that. A step made of such calls costs its workers'
  // hosts two launches a module. Other handles' calls run the module as before.
  Future<Module> Replayed(const nn::RecordingOptions& options = {}) const {
    return rpc::CreateBy<&module_calls::MakeReplayed<M>>(*agent_, owner(),
                                                         module_, options)
        .Then([handle = *this](const RRef<nn::Graphed>& replayed) {
          Module copy = handle;
          copy.replayed_ = replayed;
          return copy;
        });
  }
  // Returns what replays the module for this handle; nullopt if nothing does.
  const std::optional<RRef<nn::Graphed>>& replayed() const { return replayed_; }

  // Moves the parameters and buffers; for optimizers they remain the same
  // Variables.
  Future<void> To(Device device) const {
    return agent_->Async<&module_calls::To<M>>(owner(), module_, device);
  }
  Future<void> Train(bool training = true) const {
    return agent_->Async<&module_calls::SetTraining<M>>(owner(), module_,
                                                        training);
  }
  Future<void> Eval() const { return Train(false); }
  // Adds a hook to the module, or to its part of this name ("layer1.0"). The
  // hook runs at the module's worker, for calls from anywhere, until the
  // handle's Remove.
  template <auto kHook>
  Future<RRef<RemoteHooks>> AddHook(const std::string& part = "") const {
    const std::string hook = rpc::internal::FunctionName<kHook>();
    return rpc::OrNameMissing(
        rpc::CreateBy<&module_calls::Hooking<M, kHook>::AddHook>(
            *agent_, owner(), module_, part),
        hook,
        absl::StrCat("call dist::RegisterModuleHook<",
                     rpc::internal::TypeName<M>(), ", &", hook,
                     ">(registry) before joining"));
  }
  Future<int64_t> NumParameters() const {
    return agent_->Async<&module_calls::NumParameters<M>>(owner(), module_);
  }
  Future<nn::StateMap> StateDict(const rpc::CallOptions& options = {}) const {
    return agent_->Async<&module_calls::StateDict<M>>(owner(), options,
                                                      module_);
  }
  // Returns the errors of nn::Module::LoadStateDict.
  Future<void> LoadStateDict(const nn::StateMap& state, bool strict = true,
                             const rpc::CallOptions& options = {}) const {
    return agent_->Async<&module_calls::LoadStateDict<M>>(
        owner(), options, module_, state, strict);
  }

  const RRef<M>& ref() const { return module_; }
  // A handle can be used wherever its module is expected.
  // NOLINTBEGIN(google-explicit-constructor)
  operator const RRef<M>&() const { return module_; }
  operator ParameterSource() const { return ParameterSource(module_); }
  operator GradInput() const { return GradInput(module_); }
  // NOLINTEND(google-explicit-constructor)
  const rpc::WorkerInfo& owner() const { return module_.owner(); }

 private:
  // The lines of code, for error messages, that make a worker know M.
  static std::string Lines() {
    const std::string type = rpc::internal::TypeName<M>();
    return absl::StrCat("join by dist::Join<", type,
                        ">(options), or call dist::RegisterModule<", type,
                        ">(registry) before rpc::JoinCluster");
  }

  rpc::Agent* agent_ = nullptr;
  RRef<M> module_;
  std::optional<RRef<nn::Graphed>> replayed_;
};

}  // namespace baton::dist

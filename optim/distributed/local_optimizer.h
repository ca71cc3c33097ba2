// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/parameter_list.h"
#include "optim/distributed/codec_options.h"
#include "optim/optimizer.h"

namespace baton::dist {

// One of the handles that a distributed optimizer was given: which, and its
// parameters here.
struct OptimizerShare {
  int32_t handle = 0;
  RRef<ParameterList> list;
  static constexpr auto Fields() {
    return std::tuple{&OptimizerShare::handle, &OptimizerShare::list};
  }
};

// What LocalOptimizer does whatever the kind of optimizer. Answers once no call
// uses the modules whose parameters these are, no backward runs at the worker
// and no other optimizer steps there. Outlives what it answers. Thread-safe.
class OptimizerHost {
 public:
  // `locks` of the modules, and of the worker's parameters. The names of
  // `handle`'s state begin with "<handle>.".
  OptimizerHost(std::vector<std::shared_ptr<rpc::ObjectLock>> locks,
                std::unique_ptr<optim::Optimizer> optimizer,
                std::vector<std::string> parameter_names);

  Future<void> Step(const rpc::CallContext& call,
                    std::shared_ptr<ContextState> context, double lr);
  // The same at once, for one that holds the worker's parameters
  // (Engine::parameters) and the modules of those that have a gradient.
  void StepHeld(const optim::GradientOf& gradient_of, double lr);
  Future<optim::StateDict> State(const rpc::CallContext& call);
  Future<void> LoadState(const rpc::CallContext& call,
                         const optim::StateDict& state);

  // "2.0", "2.1", ... of the parameters of all shares, in order; one that
  // several handles have, under its first name alone.
  struct Parameters {
    std::vector<Variable> values;
    std::vector<std::string> names;
    std::vector<std::shared_ptr<rpc::ObjectLock>> locks;
  };
  static absl::StatusOr<Parameters> Gather(
      const std::vector<OptimizerShare>& shares);

 private:
  const std::vector<std::shared_ptr<rpc::ObjectLock>> locks_;
  const std::unique_ptr<optim::Optimizer> optimizer_;
  const std::vector<std::string> names_;  // of parameter i
};

// The part of a dist::Optimizer that runs beside its parameters. Thread-safe.
template <typename O>
class LocalOptimizer {
 public:
  using Options = typename OptionsOf<O>::Type;

  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Make(
      rpc::CallContext& call, const Options& options,
      const std::vector<OptimizerShare>& shares) {
    auto engine = call.agent().service<Engine>();
    if (engine == nullptr) {
      return absl::FailedPreconditionError(
          "this worker has no distributed autograd: call dist::Attach");
    }
    ASSIGN_OR_RETURN(auto parameters, OptimizerHost::Gather(shares));
    parameters.locks.push_back(engine->parameters());
    // Bad options throw; the dispatcher makes that the caller's error.
    auto optimizer = std::make_unique<O>(std::move(parameters.values), options);
    return std::make_unique<LocalOptimizer>(std::make_shared<OptimizerHost>(
        std::move(parameters.locks), std::move(optimizer),
        std::move(parameters.names)));
  }
  explicit LocalOptimizer(std::shared_ptr<OptimizerHost> host)
      : host_(std::move(host)) {}

  Future<void> Step(rpc::CallContext& call, double lr) {
    auto context = ContextOf(call);
    if (!context.ok()) return ReadyFuture<void>(context.status());
    return host_->Step(call, *context, lr);
  }
  Future<optim::StateDict> State(rpc::CallContext& call) {
    return host_->State(call);
  }
  Future<void> LoadState(rpc::CallContext& call,
                         const optim::StateDict& state) {
    return host_->LoadState(call, state);
  }

  const std::shared_ptr<OptimizerHost>& host() const { return host_; }

  using Exports =
      rpc::Methods<&LocalOptimizer::Make, &LocalOptimizer::Step,
                   &LocalOptimizer::State, &LocalOptimizer::LoadState>;

 private:
  const std::shared_ptr<OptimizerHost> host_;
};

// For what steps parameters by optimizers of any kind: a pipeline.
template <typename O>
absl::StatusOr<std::shared_ptr<OptimizerHost>> HostOf(
    const RRef<LocalOptimizer<O>>& optimizer) {
  ASSIGN_OR_RETURN(const auto local, optimizer.LocalValue());
  return local->host();
}

}  // namespace baton::dist

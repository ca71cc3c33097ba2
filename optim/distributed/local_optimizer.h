// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/distributed/parameter_list.h"
#include "optim/rule_optimizer.h"

namespace baton::dist {

// Parameters of one source of a distributed optimizer: their group, the prefix
// of their names, and their list at this worker.
struct OptimizerShare {
  int32_t group = 0;
  std::string prefix;
  RRef<ParameterList> list;
  static constexpr auto Fields() {
    return std::tuple{&OptimizerShare::group, &OptimizerShare::prefix,
                      &OptimizerShare::list};
  }
};

// The trainer's settings for one step.
struct StepRequest {
  std::vector<double> rates;  // one for each group
  double clip_norm = optim::Clip::kNone;
  double clip_value = optim::Clip::kNone;
  std::optional<double> norm = {};  // of all workers' gradients, for clip_norm
  double rate_factor = 1;           // of the rates of what no optimizer has
  // Gradients are those of a loss multiplied by this, and are divided by it
  // before they are clipped; 0: there is none. The norm is that afterwards.
  double loss_scale = 0;
  bool skip = false;  // nothing is stepped (OtherStepSettings::skip)

  // Returns InvalidArgument for limits that optim::Clip does not take.
  absl::Status Check() const;
  bool NeedsNorm() const {
    return clip_norm != optim::Clip::kNone || loss_scale != 0;
  }
  // Returns the request where the gradients, not yet divided, have this norm:
  // with a loss scale, one that is not finite skips the step.
  StepRequest WithNorm(double scaled) const;
  // Returns how the step treats what no optimizer has.
  OtherStepSettings ForOthers() const;
  static constexpr auto Fields() {
    using R = StepRequest;
    return std::tuple{&R::rates,       &R::clip_norm,  &R::clip_value, &R::norm,
                      &R::rate_factor, &R::loss_scale, &R::skip};
  }
};

// The part of LocalOptimizer that does not depend on the kind of optimizer. Its
// calls wait until no call uses the parameters' modules, no backward runs at
// the worker, and no other optimizer steps there. Its pending calls keep it
// alive. Thread-safe.
class OptimizerHost {
 public:
  // `locks` are those of the modules and of the worker's parameters.
  OptimizerHost(std::vector<std::shared_ptr<rpc::ObjectLock>> locks,
                std::unique_ptr<optim::Optimizer> optimizer);

  // Computes the square norm of the gradients without waiting.
  double SquareNorm(const optim::GradientOf& gradient_of) const;
  Future<void> Step(const rpc::CallContext& call,
                    std::shared_ptr<ContextState> context,
                    const StepRequest& request);
  // Steps without waiting, for a caller that holds the worker's parameters
  // (Engine::parameters) and the modules of those that have a gradient.
  // `skip_on` is that of Optimizer::Step.
  void StepHeld(const optim::GradientOf& gradient_of,
                const StepRequest& request,
                const optim::SkipOn& skip_on = nullptr);
  Future<optim::StateDict> State(const rpc::CallContext& call);
  Future<void> LoadState(const rpc::CallContext& call,
                         const optim::StateDict& state);
  // For a caller that holds the same as for StepHeld. StateHeld returns the
  // optimizer's own tensors.
  optim::StateDict StateHeld() const;
  absl::Status LoadStateHeld(const optim::StateDict& state);
  const std::vector<std::string>& names() const { return optimizer_->names(); }

  // The parameters of each group and their names. A parameter in several shares
  // is listed only where it comes first.
  struct Parameters {
    std::vector<std::vector<Variable>> values;
    std::vector<std::vector<std::string>> names;
    std::vector<std::shared_ptr<rpc::ObjectLock>> locks;
  };
  static absl::StatusOr<Parameters> Gather(
      const std::vector<OptimizerShare>& shares, size_t groups);

 private:
  const std::vector<std::shared_ptr<rpc::ObjectLock>> locks_;
  const std::unique_ptr<optim::Optimizer> optimizer_;
};

// The part of a dist::Optimizer at the worker of its parameters. Thread-safe.
template <typename O>
class LocalOptimizer {
 public:
  using Options = typename O::Options;

  // `options` has one element for each group.
  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Make(
      rpc::CallContext& call, const std::vector<Options>& options,
      const std::vector<OptimizerShare>& shares) {
    auto engine = call.agent().service<Engine>();
    if (engine == nullptr) {
      return absl::FailedPreconditionError(
          "this worker has no distributed autograd: call dist::Attach");
    }
    ASSIGN_OR_RETURN(auto parameters,
                     OptimizerHost::Gather(shares, options.size()));
    parameters.locks.push_back(engine->parameters());
    std::vector<optim::ParameterGroup<Options>> groups;
    for (size_t i = 0; i < options.size(); ++i) {
      groups.emplace_back(std::move(parameters.values[i]),
                          std::move(parameters.names[i]), options[i]);
    }
    // Bad options throw; the dispatcher makes that the caller's error.
    return std::make_unique<LocalOptimizer>(std::make_shared<OptimizerHost>(
        std::move(parameters.locks), std::make_unique<O>(groups)));
  }
  explicit LocalOptimizer(std::shared_ptr<OptimizerHost> host)
      : host_(std::move(host)) {}

  // Counts the gradients of all that Step steps here.
  absl::StatusOr<double> SquareNorm(rpc::CallContext& call) const {
    ASSIGN_OR_RETURN(auto context, ContextOf(call));
    return context->SquareNormOfOthers() +
           host_->SquareNorm([&](const Variable& parameter) {
             return context->GradientOf(parameter);
           });
  }
  Future<void> Step(rpc::CallContext& call, const StepRequest& request) {
    auto context = ContextOf(call);
    if (!context.ok()) return ReadyFuture<void>(context.status());
    return host_->Step(call, *context, request);
  }
  std::vector<std::string> Names() const { return host_->names(); }
  Future<optim::StateDict> State(rpc::CallContext& call) {
    return host_->State(call);
  }
  Future<void> LoadState(rpc::CallContext& call,
                         const optim::StateDict& state) {
    return host_->LoadState(call, state);
  }

  const std::shared_ptr<OptimizerHost>& host() const { return host_; }

  using Exports =
      rpc::Methods<&LocalOptimizer::Make, &LocalOptimizer::SquareNorm,
                   &LocalOptimizer::Step, &LocalOptimizer::Names,
                   &LocalOptimizer::State, &LocalOptimizer::LoadState>;

 private:
  const std::shared_ptr<OptimizerHost> host_;
};

// Returns the host of an optimizer of any kind, for code that steps parameters
// itself, such as a pipeline.
template <typename O>
absl::StatusOr<std::shared_ptr<OptimizerHost>> HostOf(
    const RRef<LocalOptimizer<O>>& optimizer) {
  ASSIGN_OR_RETURN(const auto local, optimizer.LocalValue());
  return local->host();
}

}  // namespace baton::dist

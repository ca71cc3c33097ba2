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
#include "autograd/distributed/update_lock.h"
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

// What LocalOptimizer does whatever the kind of optimizer. Thread-safe.
class OptimizerHost {
 public:
  // The names of `handle`'s state begin with "<handle>.".
  OptimizerHost(std::shared_ptr<UpdateLock> lock,
                std::unique_ptr<optim::Optimizer> optimizer,
                std::vector<std::string> parameter_names);

  absl::Status Step(const ContextState& context, double lr);
  optim::StateDict State() const;
  absl::Status LoadState(const optim::StateDict& state);

  // "2.0", "2.1", ... of the parameters of all shares, in order; one that
  // several handles have, under its first name alone.
  struct Parameters {
    std::vector<Variable> values;
    std::vector<std::string> names;
  };
  static absl::StatusOr<Parameters> Gather(
      const std::vector<OptimizerShare>& shares);

 private:
  const std::shared_ptr<UpdateLock> lock_;
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
    auto lock = call.agent().service<UpdateLock>();
    if (lock == nullptr) {
      return absl::FailedPreconditionError(
          "this worker has no distributed autograd: call dist::Attach");
    }
    ASSIGN_OR_RETURN(auto parameters, OptimizerHost::Gather(shares));
    // Bad options throw; the dispatcher makes that the caller's error.
    auto optimizer = std::make_unique<O>(std::move(parameters.values), options);
    return std::make_unique<LocalOptimizer>(std::make_unique<OptimizerHost>(
        std::move(lock), std::move(optimizer), std::move(parameters.names)));
  }
  explicit LocalOptimizer(std::unique_ptr<OptimizerHost> host)
      : host_(std::move(host)) {}

  absl::Status Step(rpc::CallContext& call, double lr) {
    ASSIGN_OR_RETURN(auto context, ContextOf(call));
    return host_->Step(*context, lr);
  }
  optim::StateDict State() const { return host_->State(); }
  absl::Status LoadState(const optim::StateDict& state) {
    return host_->LoadState(state);
  }

  using Exports =
      rpc::Methods<&LocalOptimizer::Make, &LocalOptimizer::Step,
                   &LocalOptimizer::State, &LocalOptimizer::LoadState>;

 private:
  const std::unique_ptr<OptimizerHost> host_;
};

}  // namespace baton::dist

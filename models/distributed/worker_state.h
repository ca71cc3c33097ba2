// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "models/nn/module.h"
#include "optim/distributed/local_optimizer.h"
#include "rpc/agent.h"

namespace baton::dist {

// The parts of a training's state. Each optimizer is a part of its own, by its
// name.
inline constexpr char kTrainerPart[] = "trainer";
inline constexpr char kModelPart[] = "model";
inline constexpr char kGeneratorPart[] = "generators";

// A module of any kind and its lock, for code that uses all modules of a worker
// at once. Never leaves the worker. Immutable.
struct HeldModule {
  std::shared_ptr<nn::Module> module;
  std::shared_ptr<rpc::ObjectLock> lock;
};

// A module of a training's state, with a prefix for its tensors' names.
struct ShardModule {
  std::string prefix;
  RRef<HeldModule> module;
  static constexpr auto Fields() {
    return std::tuple{&ShardModule::prefix, &ShardModule::module};
  }
};
struct ShardOptimizer {
  std::string part;
  RRef<OptimizerHost> host;
  static constexpr auto Fields() {
    return std::tuple{&ShardOptimizer::part, &ShardOptimizer::host};
  }
};

// The state of a worker's modules and optimizers, by tensor name: parameters,
// buffers, generators and the optimizers' state. For all methods but Make the
// caller must hold the locks. Immutable, except for the tensors that it refers
// to.
class WorkerState {
 public:
  // Returns FailedPrecondition without distributed autograd, and errors for
  // RRefs that this worker does not own.
  static absl::StatusOr<std::shared_ptr<const WorkerState>> Make(
      const rpc::CallContext& call, const std::vector<ShardModule>& modules,
      const std::vector<ShardOptimizer>& optimizers);

  // Returns the locks of the modules and of the worker's parameters.
  const std::vector<std::shared_ptr<rpc::ObjectLock>>& locks() const {
    return locks_;
  }
  // Returns the tensors themselves, which change as the modules do.
  NamedTensors Tensors() const;
  // Returns those of `names` that Load would use.
  std::vector<std::string> Taken(const std::vector<std::string>& names) const;
  // Copies the tensors into the state. Returns InvalidArgument if some are
  // missing or do not fit; the modules and optimizers must then be discarded.
  absl::Status Load(const NamedTensors& tensors) const;
  // Loads only parameters and buffers; returns the names of those that it used.
  absl::StatusOr<std::vector<std::string>> LoadWeights(
      const NamedTensors& weights) const;

 private:
  struct Module {
    std::string prefix;
    std::shared_ptr<nn::Module> module;
  };
  struct Optimizer {
    std::string part;
    std::shared_ptr<OptimizerHost> host;
  };
  std::vector<Module> modules_;
  std::vector<Optimizer> optimizers_;
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks_;
};

}  // namespace baton::dist

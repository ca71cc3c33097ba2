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

// The parts of a training's state; those of optimizers have names of their own.
inline constexpr char kTrainerPart[] = "trainer";
inline constexpr char kModelPart[] = "model";
inline constexpr char kGeneratorPart[] = "generators";

// A module of any kind, at its worker, and its lock: for what the worker does
// with all that it has. Stays there. Immutable.
struct HeldModule {
  std::shared_ptr<nn::Module> module;
  std::shared_ptr<rpc::ObjectLock> lock;
};

// What a worker has of a training: modules, the names of whose tensors get a
// prefix, and optimizers.
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

// The state of these by its tensors' names, at the worker: parameters, buffers,
// generators and what optimizers keep. All but Make is for one that holds the
// locks. Immutable, but for what it names.
class WorkerState {
 public:
  // FailedPrecondition without distributed autograd; errors of RRefs that are
  // not of this worker.
  static absl::StatusOr<std::shared_ptr<const WorkerState>> Make(
      const rpc::CallContext& call, const std::vector<ShardModule>& modules,
      const std::vector<ShardOptimizer>& optimizers);

  // Of the modules, and of the worker's parameters.
  const std::vector<std::shared_ptr<rpc::ObjectLock>>& locks() const {
    return locks_;
  }
  // Not copied: they change as the modules do.
  NamedTensors Tensors() const;
  // Those of these names that Load takes.
  std::vector<std::string> Taken(const std::vector<std::string>& names) const;
  // Copies of these. InvalidArgument where some are missing or do not fit; the
  // modules and optimizers are then to be given up.
  absl::Status Load(const NamedTensors& tensors) const;
  // Parameters and buffers alone; the names of those that were taken.
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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "models/distributed/module.h"
#include "optim/distributed/local_optimizer.h"
#include "rpc/methods.h"

namespace baton::dist {

// The parts of a checkpoint; those of optimizers have names of their own.
inline constexpr char kTrainerPart[] = "trainer";
inline constexpr char kModelPart[] = "model";
inline constexpr char kGeneratorPart[] = "generators";

// What a worker has of a checkpoint: modules, the names of whose tensors get a
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

// Writes and reads a worker's part of checkpoints, at the worker. Calls wait
// for those that use the modules, and for optimizers' steps. Thread-safe.
class WorkerShard {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerShard>> Make(
      rpc::CallContext& call, const std::vector<ShardModule>& modules,
      const std::vector<ShardOptimizer>& optimizers);

  // Done once all is copied to host memory; a thread writes it from then on.
  Future<void> Copy(rpc::CallContext& call, const CheckpointDraft& draft,
                    int32_t number);
  // What the last Copy has come to.
  Future<Shard> Written();

  // Reads what the modules and optimizers here need; gives the names of that in
  // the checkpoint.
  Future<std::vector<std::string>> Load(rpc::CallContext& call,
                                        const std::string& folder,
                                        int64_t step);
  // Of a plain file, which has the names of kModelPart alone.
  Future<std::vector<std::string>> LoadWeights(rpc::CallContext& call,
                                               const std::string& path);

  using Exports = rpc::Methods<&WorkerShard::Make, &WorkerShard::Copy,
                               &WorkerShard::Written, &WorkerShard::Load,
                               &WorkerShard::LoadWeights>;

 private:
  struct Module {
    std::string prefix;
    std::shared_ptr<nn::Module> module;
  };
  struct Optimizer {
    std::string part;
    std::shared_ptr<OptimizerHost> host;
  };
  // Outlives calls that wait when the object goes.
  struct Parts {
    std::vector<Module> modules;
    std::vector<Optimizer> optimizers;
    std::vector<std::shared_ptr<rpc::ObjectLock>> locks;

    NamedTensors State() const;
    absl::StatusOr<std::vector<std::string>> Load(
        const Checkpoint& checkpoint) const;
    absl::StatusOr<std::vector<std::string>> LoadWeights(
        const NamedTensors& weights) const;
  };
  explicit WorkerShard(std::shared_ptr<const Parts> parts)
      : parts_(std::move(parts)) {}

  // Likewise.
  struct Writing {
    Mutex mutex;
    HostCopies copies ABSL_GUARDED_BY(mutex);
    Future<Shard> written ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "checkpoint"};

    // `state` may be changed then; `written` is of it as it was.
    void Begin(const NamedTensors& state, const CheckpointDraft& draft,
               int32_t number);
  };

  const std::shared_ptr<const Parts> parts_;
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
};

}  // namespace baton::dist

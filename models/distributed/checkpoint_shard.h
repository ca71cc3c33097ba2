// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "models/distributed/worker_state.h"
#include "rpc/agent.h"
#include "rpc/exports.h"

namespace baton::dist {

// Writes and reads one worker's part of checkpoints, at that worker. Its calls
// wait for calls that use the modules and for steps of the optimizers.
// Thread-safe.
class WorkerShard {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerShard>> Make(
      rpc::CallContext& call, const std::vector<ShardModule>& modules,
      const std::vector<ShardOptimizer>& optimizers);

  // Returns once the state is copied to host memory; a thread then writes it.
  Future<void> Copy(rpc::CallContext& call, const CheckpointDraft& draft,
                    int32_t number);
  // Returns the result of the write that the last Copy began.
  Future<Shard> Written();

  // Loads what the modules and optimizers of this worker need; returns the
  // names of the tensors that it used from the checkpoint.
  Future<std::vector<std::string>> Load(rpc::CallContext& call,
                                        const std::string& folder,
                                        int64_t step);
  // Loads from a plain safetensors file, which contains only tensors of the
  // kModelPart.
  Future<std::vector<std::string>> LoadWeights(rpc::CallContext& call,
                                               const std::string& path);

  using Exports = rpc::Methods<&WorkerShard::Make, &WorkerShard::Copy,
                               &WorkerShard::Written, &WorkerShard::Load,
                               &WorkerShard::LoadWeights>;

 private:
  explicit WorkerShard(std::shared_ptr<const WorkerState> state)
      : state_(std::move(state)) {}

  // Shared, because waiting calls may outlive the WorkerShard.
  struct Writing {
    Mutex mutex;
    HostCopies copies ABSL_GUARDED_BY(mutex);
    Future<Shard> written ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "checkpoint"};

    // When this returns, `state` may be changed; `written` is the state as it
    // was.
    void Begin(const NamedTensors& state, const CheckpointDraft& draft,
               int32_t number);
  };

  const std::shared_ptr<const WorkerState> state_;
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
};

}  // namespace baton::dist

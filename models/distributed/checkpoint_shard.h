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
#include "rpc/methods.h"

namespace baton::dist {

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
  explicit WorkerShard(std::shared_ptr<const WorkerState> state)
      : state_(std::move(state)) {}

  // As the state, outlives calls that wait when the object goes.
  struct Writing {
    Mutex mutex;
    HostCopies copies ABSL_GUARDED_BY(mutex);
    Future<Shard> written ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "checkpoint"};

    // `state` may be changed then; `written` is of it as it was.
    void Begin(const NamedTensors& state, const CheckpointDraft& draft,
               int32_t number);
  };

  const std::shared_ptr<const WorkerState> state_;
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
};

}  // namespace baton::dist

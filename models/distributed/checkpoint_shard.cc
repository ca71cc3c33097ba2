// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/checkpoint_shard.h"

#include "core/status.h"

namespace baton::dist {

absl::StatusOr<std::unique_ptr<WorkerShard>> WorkerShard::Make(
    rpc::CallContext& call, const std::vector<ShardModule>& modules,
    const std::vector<ShardOptimizer>& optimizers) {
  ASSIGN_OR_RETURN(auto state, WorkerState::Make(call, modules, optimizers));
  return std::unique_ptr<WorkerShard>(new WorkerShard(std::move(state)));
}

// The previous save may have failed elsewhere and still be in progress here.
void WorkerShard::Writing::Begin(const NamedTensors& state,
                                 const CheckpointDraft& draft, int32_t number) {
  const MutexLock lock(mutex);
  if (written.valid() && !written.ready()) copies.Leave();
  const Promise<Shard> promise;
  pool.Post([mine = copies.Begin(state), draft, number, promise] {
    promise.Set(
        CatchErrors([&] { return WriteShard(draft, number, mine.Wait()); }));
  });
  written = promise.future();
}

Future<void> WorkerShard::Copy(rpc::CallContext& call,
                               const CheckpointDraft& draft, int32_t number) {
  return rpc::WithObjects(call, state_->locks(), rpc::Access::kShared,
                          [state = state_, writing = writing_, draft, number] {
                            writing->Begin(state->Tensors(), draft, number);
                          });
}

Future<Shard> WorkerShard::Written() {
  const MutexLock lock(writing_->mutex);
  return writing_->written.valid()
             ? writing_->written
             : ReadyFuture<Shard>(absl::FailedPreconditionError(
                   "nothing was copied to be written"));
}

namespace {

// Reads everything before it changes anything.
absl::StatusOr<std::vector<std::string>> LoadFrom(const Checkpoint& checkpoint,
                                                  const WorkerState& state) {
  std::vector<std::string> names = state.Taken(checkpoint.Names());
  ASSIGN_OR_RETURN(const NamedTensors read, checkpoint.Read(names));
  RETURN_IF_ERROR(state.Load(read));
  return names;
}

}  // namespace

Future<std::vector<std::string>> WorkerShard::Load(rpc::CallContext& call,
                                                   const std::string& folder,
                                                   int64_t step) {
  return rpc::WithObjects(call, state_->locks(), rpc::Access::kExclusive,
                          [state = state_, folder,
                           step]() -> absl::StatusOr<std::vector<std::string>> {
                            ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                                             Checkpoint::Open(folder, step));
                            return LoadFrom(checkpoint, *state);
                          });
}

Future<std::vector<std::string>> WorkerShard::LoadWeights(
    rpc::CallContext& call, const std::string& path) {
  return rpc::WithObjects(
      call, state_->locks(), rpc::Access::kExclusive,
      [state = state_, path]() -> absl::StatusOr<std::vector<std::string>> {
        ASSIGN_OR_RETURN(const SafeTensors weights, ReadSafeTensors(path));
        auto names = state->LoadWeights(AsPart(kModelPart, weights.tensors));
        if (!names.ok()) return Annotate(names.status(), path);
        return names;
      });
}

}  // namespace baton::dist

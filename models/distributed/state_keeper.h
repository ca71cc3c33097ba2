// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint_writer.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/state_store.h"
#include "models/distributed/worker_state.h"
#include "rpc/agent.h"

namespace baton::dist {

// What a StateKeeper keeps and where it puts the copies.
struct KeeperSpec {
  uint64_t epoch = 0;
  int32_t place = 0;  // the worker's place in the pipeline
  std::vector<ShardModule> modules{};
  std::vector<ShardOptimizer> optimizers{};
  RRef<StateStore> own;    // at this worker
  RRef<StateStore> buddy;  // at another worker
  static constexpr auto Fields() {
    return std::tuple{&KeeperSpec::epoch,   &KeeperSpec::place,
                      &KeeperSpec::modules, &KeeperSpec::optimizers,
                      &KeeperSpec::own,     &KeeperSpec::buddy};
  }
};

// Copies the state of one worker of a pipeline after some of its steps. Runs at
// that worker. While the step still holds the modules, copies to host memory
// or, on a GPU, within the GPU's memory; then, concurrently with later steps,
// to host memory and to the buddy's memory. Keeps the last two copies. Once
// another trainer has taken over the pipeline, it changes neither modules nor
// copies. Thread-safe, but steps must come one after the other.
class StateKeeper {
 public:
  static absl::StatusOr<std::unique_ptr<StateKeeper>> Make(
      rpc::CallContext& call, const KeeperSpec& spec);

  // Loads the modules and optimizers with the state after `step` from the store
  // `from`; if `from` is empty, the state stays as it is. Keeps a copy in
  // either case. Call this between steps. Errors are also those of Check.
  Future<void> Begin(rpc::CallContext& call, int64_t step,
                     const RRef<StateStore>& from);

  // Returns PermissionDenied once another trainer has taken over the pipeline.
  absl::Status Check() const;
  // Copies the state after `step`, for a step that holds the modules and the
  // worker's parameters. The copy is kept if `agreed`, whether the step counts,
  // becomes OK, and is dropped if it becomes an error. The state kept last must
  // be safe at all workers, because this call drops the one before it.
  void KeepHeld(int64_t step, const Future<double>& agreed);
  // Done when the buddy has the state after `step`, which is one of the last
  // two that were kept.
  Future<void> Safe(int64_t step);

  using Exports =
      rpc::Methods<&StateKeeper::Make, &StateKeeper::Begin, &StateKeeper::Safe>;

 private:
  // Shared, because waiting calls may outlive the StateKeeper.
  struct Keeping {
    KeeperSpec spec;
    std::shared_ptr<const WorkerState> state;
    std::shared_ptr<StateStore> own;
    struct Slot {
      HostCopies of_cpu{}, of_gpus{};
      std::optional<int64_t> step = std::nullopt;
    };
    // A state that was copied, on a GPU within its memory, for that slot.
    struct Copied {
      NamedTensors on_cpu{}, on_gpus{};
      Slot* slot = nullptr;
    };
    std::array<Slot, 2> slots;  // the states use these in turn
    size_t next_slot = 0;
    Mutex mutex;
    std::map<int64_t, Promise<void>> safe ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "keeper"};  // waits for copies and sends them

    // Returns an error if another trainer has taken over the pipeline.
    absl::StatusOr<Copied> Copy(int64_t step);
    // Stores the copied state here, in host memory, and at the buddy.
    void Put(int64_t step, Copied copied, const Promise<void>& sent);
    // Returns the promise that Safe waits for.
    Promise<void> SafeOf(int64_t step);
    Future<void> Send(int64_t step, const NamedTensors& copy) const;
  };
  explicit StateKeeper(std::shared_ptr<Keeping> keeping)
      : keeping_(std::move(keeping)) {}

  const std::shared_ptr<Keeping> keeping_;
};

}  // namespace baton::dist

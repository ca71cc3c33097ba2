// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
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

// Copies the state of one worker of a pipeline after each step, at that worker:
// to host memory while the step holds the modules, and from there, concurrently
// with later steps, to the memory of a buddy. The copy of a step is dropped
// when the next step but one is copied. Thread-safe, except that steps must
// come one after the other. Once another trainer has taken the pipeline over,
// neither the modules nor what is kept changes by it.
class StateKeeper {
 public:
  static absl::StatusOr<std::unique_ptr<StateKeeper>> Make(
      rpc::CallContext& call, const KeeperSpec& spec);

  // Call this between steps. Loads the modules and optimizers with the state
  // after `step` from the store `from`; if `from` is empty, the state stays as
  // it is. Either way the state is kept. Errors are also those of Check.
  Future<void> Begin(rpc::CallContext& call, int64_t step,
                     const RRef<StateStore>& from);

  // Returns PermissionDenied once another trainer has taken the pipeline over.
  absl::Status Check() const;
  // Keeps the state after `step`, for a step that holds the modules and the
  // worker's parameters. The state after the previous step must be safe.
  void KeepHeld(int64_t step);
  // Done when the buddy has the state after `step`, which is one of the last
  // two.
  Future<void> Safe(int64_t step);

  using Exports =
      rpc::Methods<&StateKeeper::Make, &StateKeeper::Begin, &StateKeeper::Safe>;

 private:
  // Shared, because waiting calls may outlive the StateKeeper.
  struct Keeping {
    KeeperSpec spec;
    std::shared_ptr<const WorkerState> state;
    std::shared_ptr<StateStore> own;
    // The steps use these in turn.
    std::array<HostCopies, 2> copies;
    Mutex mutex;
    std::map<int64_t, Future<void>> safe ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "keeper"};  // waits for copies and sends them

    void Keep(int64_t step);
    Future<void> Send(int64_t step, const NamedTensors& copy) const;
  };
  explicit StateKeeper(std::shared_ptr<Keeping> keeping)
      : keeping_(std::move(keeping)) {}

  const std::shared_ptr<Keeping> keeping_;
};

}  // namespace baton::dist

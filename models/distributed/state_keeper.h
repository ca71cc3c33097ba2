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

// What a StateKeeper keeps, and where.
struct KeeperSpec {
  uint64_t epoch = 0;
  int32_t place = 0;  // of the worker
  std::vector<ShardModule> modules{};
  std::vector<ShardOptimizer> optimizers{};
  RRef<StateStore> own;    // here
  RRef<StateStore> buddy;  // another worker's
  static constexpr auto Fields() {
    return std::tuple{&KeeperSpec::epoch,   &KeeperSpec::place,
                      &KeeperSpec::modules, &KeeperSpec::optimizers,
                      &KeeperSpec::own,     &KeeperSpec::buddy};
  }
};

// Copies the state of one worker of a pipeline after each step, at the worker:
// to host memory while the step has the modules, and from there, beside the
// steps that follow, to the memory of a buddy. Those of a step are given up
// when that of the next but one is copied. Thread-safe, but for steps, which
// come one after the other.
class StateKeeper {
 public:
  static absl::StatusOr<std::unique_ptr<StateKeeper>> Make(
      rpc::CallContext& call, const KeeperSpec& spec);

  // Between steps: the modules and optimizers take the state after that step,
  // which `from` has; nobody: the state is as it is. Either way it is kept.
  Future<void> Begin(rpc::CallContext& call, int64_t step,
                     const RRef<StateStore>& from);

  // PermissionDenied once another trainer has taken the pipeline over.
  absl::Status Check() const;
  // For a step that has the modules and the worker's parameters: the state
  // after it. That after the step before must be safe.
  void KeepHeld(int64_t step);
  // Done when the buddy has the state after this step, one of the last two.
  Future<void> Safe(int64_t step);

  using Exports = rpc::Methods<&StateKeeper::Make, &StateKeeper::Begin>;

 private:
  // Outlives calls that wait when the object goes.
  struct Keeping {
    KeeperSpec spec;
    std::shared_ptr<const WorkerState> state;
    std::shared_ptr<StateStore> own;
    // Of steps in turn.
    std::array<HostCopies, 2> copies;
    Mutex mutex;
    std::map<int64_t, Future<void>> safe ABSL_GUARDED_BY(mutex);
    ThreadPool pool{1, "keeper"};  // waits for copies, and sends them

    void Keep(int64_t step);
    Future<void> Send(int64_t step, const NamedTensors& copy) const;
  };
  explicit StateKeeper(std::shared_ptr<Keeping> keeping)
      : keeping_(std::move(keeping)) {}

  const std::shared_ptr<Keeping> keeping_;
};

}  // namespace baton::dist

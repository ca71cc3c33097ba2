// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/mutex.h"
#include "rpc/call_context.h"
#include "rpc/methods.h"
#include "rpc/worker.h"

namespace baton::dist {

// Identifies the state of a pipeline's worker, by its place, after a step.
struct KeptState {
  int32_t place = 0;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&KeptState::place, &KeptState::step};
  }
  friend bool operator==(const KeptState&, const KeptState&) = default;
};

// Each trainer that takes a pipeline up owns this many of its epochs, beginning
// with a multiple of this number; it uses one each time it makes the pipeline.
inline constexpr uint64_t kEpochsOfTrainer = uint64_t{1} << 32;

// A trainer's claim to the states that a worker keeps of a pipeline.
struct StateClaim {
  std::string pipeline = {};  // its name; empty: no other trainer takes it up
  uint64_t epoch = 0;
  bool takes_up = false;  // keeps the states of an earlier trainer
  // How long the states are kept once this trainer has left or is lost.
  int64_t grace_ms = 0;
  static constexpr auto Fields() {
    return std::tuple{&StateClaim::pipeline, &StateClaim::epoch,
                      &StateClaim::takes_up, &StateClaim::grace_ms};
  }
};

// The last two states that were kept in the host memory of a pipeline's worker:
// its own and, as a buddy, those of another worker. Survives when the pipeline
// is made anew and, if the pipeline has a name, for a while when its trainer is
// lost. Once another trainer has claimed the states, every request of an
// earlier one returns PermissionDenied, which names the other. Thread-safe.
class StateStore {
 public:
  // Returns a new store, or the one of that name. PermissionDenied if a later
  // trainer has claimed it, or another trainer this epoch.
  static absl::StatusOr<std::shared_ptr<StateStore>> Make(
      rpc::CallContext& call, const StateClaim& claim);
  absl::Status Claim(const rpc::WorkerInfo& trainer, const StateClaim& claim);

  // From now on refuses states that earlier epochs put. Returns what is stored
  // here.
  absl::StatusOr<std::vector<KeptState>> Fence(uint64_t epoch);
  // Returns OK if orders of this epoch are still to be followed.
  absl::Status Check(uint64_t epoch);
  // Stores a state. Drops the states of this and of later steps at that place,
  // which did not count. Returns Aborted if the epoch is earlier than that of
  // the last Fence.
  absl::Status Put(uint64_t epoch, const KeptState& key,
                   const NamedTensors& state);
  absl::StatusOr<NamedTensors> Get(uint64_t epoch, const KeptState& key);
  // Drops a state because the owner of its tensors is about to overwrite them.
  // After an error, which is as of Put, it must not.
  absl::Status Drop(uint64_t epoch, const KeptState& key);

  using Exports =
      rpc::Methods<&StateStore::Make, &StateStore::Fence, &StateStore::Check,
                   &StateStore::Put, &StateStore::Get>;

 private:
  absl::Status CheckTrainerLocked(uint64_t epoch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For what changes the state after a step.
  absl::Status CheckEpochLocked(uint64_t epoch, int64_t step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  rpc::WorkerInfo trainer_ ABSL_GUARDED_BY(mutex_);
  // By place and step.
  std::map<std::pair<int32_t, int64_t>, NamedTensors> states_
      ABSL_GUARDED_BY(mutex_);
};

// Of the last claim to a pipeline of this name, at a worker; 0: there is none.
uint64_t ClaimedEpoch(rpc::CallContext& call, const std::string& pipeline);

}  // namespace baton::dist

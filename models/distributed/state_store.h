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
#include "rpc/exports.h"
#include "rpc/worker.h"

namespace baton::dist {

// Identifies a state by the worker's place in the pipeline and the step after
// which it was copied.
struct KeptState {
  int32_t place = 0;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&KeptState::place, &KeptState::step};
  }
  friend bool operator==(const KeptState&, const KeptState&) = default;
};

// Each trainer that makes or takes over a pipeline owns this many epochs,
// beginning with a multiple of this number; it uses one each time it makes the
// pipeline anew.
inline constexpr uint64_t kEpochsOfTrainer = uint64_t{1} << 32;

// A trainer's claim to the states that a worker keeps for a pipeline.
struct StateClaim {
  std::string pipeline = {};  // its name; empty: no other trainer takes it over
  uint64_t epoch = 0;
  bool takes_up = false;  // the worker keeps the states of earlier trainers
  // How long the worker keeps the states once this trainer has left or is lost.
  int64_t grace_ms = 0;
  static constexpr auto Fields() {
    return std::tuple{&StateClaim::pipeline, &StateClaim::epoch,
                      &StateClaim::takes_up, &StateClaim::grace_ms};
  }
};

// Holds the last two states of a pipeline's worker in host memory and, as a
// buddy, those of another worker. Survives when the pipeline is made anew and,
// if the pipeline has a name, for the grace period when its trainer is lost.
// Once another trainer has claimed the states, every request of an earlier one
// returns PermissionDenied, which names the other. Thread-safe.
class StateStore {
 public:
  // Returns the store of the claim's pipeline, or a new one if the claim names
  // no pipeline. Returns PermissionDenied if a later trainer has claimed the
  // store, or another trainer has claimed it under the same epoch.
  static absl::StatusOr<std::shared_ptr<StateStore>> Make(
      rpc::CallContext& call, const StateClaim& claim);
  absl::Status Claim(const rpc::WorkerInfo& trainer, const StateClaim& claim);

  // Refuses, from now on, states that are put under earlier epochs. Returns the
  // states that are stored here.
  absl::StatusOr<std::vector<KeptState>> Fence(uint64_t epoch);
  // Returns OK unless a later trainer than this epoch's has claimed the states.
  absl::Status Check(uint64_t epoch);
  // Stores a state. Drops this place's states after this step and after later
  // ones, which never counted. Returns Aborted if the epoch is earlier than
  // that of the last Fence.
  absl::Status Put(uint64_t epoch, const KeptState& key,
                   const NamedTensors& state);
  absl::StatusOr<NamedTensors> Get(uint64_t epoch, const KeptState& key);
  // Drops a state because the owner of its tensors is about to overwrite them.
  // The owner must not do so after an error. Errors are those of Put.
  absl::Status Drop(uint64_t epoch, const KeptState& key);

  using Exports =
      rpc::Methods<&StateStore::Make, &StateStore::Fence, &StateStore::Check,
                   &StateStore::Put, &StateStore::Get>;

 private:
  absl::Status CheckTrainerLocked(uint64_t epoch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For calls that change the stored states. Returns Aborted for an epoch that
  // is over.
  absl::Status CheckEpochLocked(uint64_t epoch, int64_t step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  rpc::WorkerInfo trainer_ ABSL_GUARDED_BY(mutex_);
  // By place and step.
  std::map<std::pair<int32_t, int64_t>, NamedTensors> states_
      ABSL_GUARDED_BY(mutex_);
};

// Returns the epoch of the last claim to a pipeline of this name at the called
// worker; 0 if there is none.
uint64_t ClaimedEpoch(rpc::CallContext& call, const std::string& pipeline);

}  // namespace baton::dist

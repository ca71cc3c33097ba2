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

// The state of a worker of a pipeline, by its place among them, after a step.
struct KeptState {
  int32_t place = 0;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&KeptState::place, &KeptState::step};
  }
  friend bool operator==(const KeptState&, const KeptState&) = default;
};

// Each trainer that takes a pipeline up has so many epochs of it, from a
// multiple of these on: one for each time that it makes the pipeline anew.
inline constexpr uint64_t kEpochsOfTrainer = uint64_t{1} << 32;

// A trainer's claim to the states that a worker keeps of a pipeline.
struct StateClaim {
  std::string pipeline = {};  // its name; empty: no other trainer takes it up
  uint64_t epoch = 0;
  bool takes_up = false;  // states that are there stay: another trainer's
  // How long they are kept once this trainer has left or is lost.
  int64_t grace_ms = 0;
  static constexpr auto Fields() {
    return std::tuple{&StateClaim::pipeline, &StateClaim::epoch,
                      &StateClaim::takes_up, &StateClaim::grace_ms};
  }
};

// What a worker of a pipeline has in host memory of the states after the last
// two steps: its own ones, and as a buddy those of another worker. Outlives
// pipelines that are made anew, and of a pipeline that has a name its trainer,
// for a while. Whatever an earlier trainer asks, once another has claimed them,
// is PermissionDenied, which names that other. Thread-safe.
class StateStore {
 public:
  // New ones, or those of that name. PermissionDenied where a later trainer has
  // claimed them, or this one's epoch has been claimed by another.
  static absl::StatusOr<std::shared_ptr<StateStore>> Make(
      rpc::CallContext& call, const StateClaim& claim);
  absl::Status Claim(const rpc::WorkerInfo& trainer, const StateClaim& claim);

  // From now on, what earlier epochs still put is refused. Gives what is here.
  absl::StatusOr<std::vector<KeptState>> Fence(uint64_t epoch);
  // Whether an order of this epoch is still to be followed.
  absl::Status Check(uint64_t epoch);
  // In the place of the states of this step and of those that followed it,
  // which did not count. Aborted for an earlier epoch than the last Fence's.
  absl::Status Put(uint64_t epoch, const KeptState& key,
                   const NamedTensors& state);
  absl::StatusOr<NamedTensors> Get(const KeptState& key);
  // The owner of its tensors is about to write them.
  void Drop(const KeptState& key);

  using Exports = rpc::Methods<&StateStore::Make, &StateStore::Fence,
                               &StateStore::Put, &StateStore::Get>;

 private:
  absl::Status CheckTrainerLocked(uint64_t epoch) const
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

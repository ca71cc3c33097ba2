// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/mutex.h"
#include "rpc/methods.h"

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

// The states after the last two steps in the host memory of a pipeline's
// worker: its own and, as a buddy, those of another worker. Survives when the
// pipeline is made anew. Thread-safe.
class StateStore {
 public:
  static std::unique_ptr<StateStore> Make() {
    return std::make_unique<StateStore>();
  }

  // From now on refuses states that earlier epochs put. Returns what is stored
  // here.
  std::vector<KeptState> Fence(uint64_t epoch);
  // Stores a state. Drops the states of this and of later steps at that place,
  // which did not count. Returns Aborted if the epoch is earlier than that of
  // the last Fence.
  absl::Status Put(uint64_t epoch, const KeptState& key,
                   const NamedTensors& state);
  absl::StatusOr<NamedTensors> Get(const KeptState& key);
  // Drops a state because the owner of its tensors is about to overwrite them.
  void Drop(const KeptState& key);

  using Exports = rpc::Methods<&StateStore::Make, &StateStore::Fence,
                               &StateStore::Put, &StateStore::Get>;

 private:
  Mutex mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // By place and step.
  std::map<std::pair<int32_t, int64_t>, NamedTensors> states_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist

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

// The state of a worker of a pipeline, by its place among them, after a step.
struct KeptState {
  int32_t place = 0;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&KeptState::place, &KeptState::step};
  }
  friend bool operator==(const KeptState&, const KeptState&) = default;
};

// What a worker of a pipeline has in host memory of the states after the last
// two steps: its own ones, and as a buddy those of another worker. Outlives
// pipelines that are made anew. Thread-safe.
class StateStore {
 public:
  static std::unique_ptr<StateStore> Make() {
    return std::make_unique<StateStore>();
  }

  // From now on, what earlier epochs still put is refused. Gives what is here.
  std::vector<KeptState> Fence(uint64_t epoch);
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
  Mutex mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // By place and step.
  std::map<std::pair<int32_t, int64_t>, NamedTensors> states_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist

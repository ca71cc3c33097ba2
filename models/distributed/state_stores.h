// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/timer.h"
#include "models/distributed/state_store.h"
#include "rpc/agent.h"

namespace baton::dist {

// The states that a worker keeps for pipelines whose trainers may be lost, by
// the pipelines' names: no longer than a claim says after its trainer has gone,
// unless another has claimed them. Thread-safe.
class StateStores : public std::enable_shared_from_this<StateStores> {
 public:
  // Those of this agent; made by the first who asks.
  static std::shared_ptr<StateStores> Of(rpc::Agent& agent);
  explicit StateStores(Timer& timer) : timer_(timer) {}

  // Made, if there are none. As StateStore::Make.
  absl::StatusOr<std::shared_ptr<StateStore>> Claim(
      const rpc::WorkerInfo& trainer, const StateClaim& claim);
  // The last one that claimed them; 0: nobody has.
  uint64_t EpochOf(const std::string& pipeline);

 private:
  struct Entry {
    std::shared_ptr<StateStore> store = nullptr;
    rpc::WorkerInfo trainer = {};
    uint64_t epoch = 0;
    int64_t grace_ms = 0;
    Timer::Id drop = 0;
  };
  void Hear(const rpc::MemberEvent& event);
  void Drop(const std::string& pipeline, uint64_t epoch);

  Timer& timer_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist

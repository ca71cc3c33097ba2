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

// The StateStores of an agent's worker, for pipelines whose trainers may be
// lost, by the pipelines' names. When a trainer has left or is lost, its states
// are dropped after the grace period of its claim, unless another trainer
// claims them. Thread-safe.
class StateStores : public std::enable_shared_from_this<StateStores> {
 public:
  // Returns the agent's instance, and makes it on the first call.
  static std::shared_ptr<StateStores> Of(rpc::Agent& agent);
  explicit StateStores(Timer& timer) : timer_(timer) {}

  // Returns the pipeline's store, and makes it if there is none. Errors are
  // those of StateStore::Make.
  absl::StatusOr<std::shared_ptr<StateStore>> Claim(
      const rpc::WorkerInfo& trainer, const StateClaim& claim);
  // Returns the epoch of the last claim; 0 if nobody has claimed the states.
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

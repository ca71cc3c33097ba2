// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "examples/rl/observer.h"
#include "examples/rl/policy_agent.h"
#include "examples/support/participants.h"
#include "rpc/agent.h"

namespace baton::examples {

// The observers of one agent, one on each worker. Those on workers that are
// lost drop out, workers that join get one: both count from the next round on.
// Confined to one thread.
class Observers {
 public:
  // On so many workers at most, other than the agent's own; 0: on all.
  Observers(rpc::Agent& agent, std::shared_ptr<PolicyAgent> policy,
            int64_t most = 0);

  // So many episodes from `first` on, shared by those that are there; without
  // those of observers that were lost meanwhile. Unavailable where there is
  // none.
  absl::StatusOr<Played> Play(uint64_t seed, int64_t first, int64_t episodes);
  // So many requests of each, without episodes.
  absl::StatusOr<Played> Ask(uint64_t seed, int64_t requests);

  // That have played last, to the end.
  int64_t played() const { return played_; }
  int64_t lost() const { return participants_.lost(); }

 private:
  // Gives order(i, all) to the i-th of all that are there.
  absl::StatusOr<Played> PlayAll(
      const std::function<PlayOrder(size_t i, size_t all)>& order);

  const std::shared_ptr<PolicyAgent> policy_;
  Participants<Observer> participants_;
  int64_t played_ = 0;
};

}  // namespace baton::examples

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

// The observers of one agent, one on each worker. Observers on lost workers are
// dropped, and workers that join get one, from the next round on. Confined to
// one thread.
class Observers {
 public:
  // Uses at most `most` workers, without the agent's own; 0: all.
  Observers(rpc::Agent& agent, std::shared_ptr<PolicyAgent> policy,
            int64_t most = 0);

  // Plays `episodes` episodes from number `first` on, divided among the
  // observers. Leaves out those of observers that are lost meanwhile.
  // Unavailable if there is no observer.
  absl::StatusOr<Played> Play(uint64_t seed, int64_t first, int64_t episodes);
  // Makes `requests` requests at each observer, without episodes.
  absl::StatusOr<Played> Ask(uint64_t seed, int64_t requests);

  // The number of observers that played the last round to its end.
  int64_t played() const { return played_; }
  int64_t lost() const { return participants_.lost(); }

 private:
  // Calls order(i, all) for the i-th of all observers, and plays these orders.
  absl::StatusOr<Played> PlayAll(
      const std::function<PlayOrder(size_t i, size_t all)>& order);

  const std::shared_ptr<PolicyAgent> policy_;
  Participants<Observer> participants_;
  int64_t played_ = 0;
};

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "core/future.h"
#include "examples/rl/policy_agent.h"
#include "rpc/call_context.h"
#include "rpc/exports.h"
#include "rpc/registry.h"
#include "rpc/rref.h"

namespace baton::examples {

// What to play. Every observer plays an episode the same way if the agent
// answers the same.
struct PlayOrder {
  uint64_t seed = 1;
  int64_t first_episode = 0;
  int64_t episodes = 1;
  // If above 0: make this number of requests instead, and keep no episodes.
  int64_t requests = 0;
  static constexpr auto Fields() {
    return std::tuple{&PlayOrder::seed, &PlayOrder::first_episode,
                      &PlayOrder::episodes, &PlayOrder::requests};
  }
};

struct Played {
  std::vector<Episode> episodes;
  std::vector<float> latencies_us;  // of each request
  static constexpr auto Fields() {
    return std::tuple{&Played::episodes, &Played::latencies_us};
  }
};

// Runs the environment and asks the agent for each action. Lives at a worker.
// Holds no thread while it waits for an answer. Thread-safe.
class Observer {
 public:
  static std::unique_ptr<Observer> Make(const RRef<PolicyAgent>& agent);

  // Fails if the agent does not answer.
  Future<Played> Play(rpc::CallContext& call, const PlayOrder& order) const;

  using Exports = rpc::Methods<&Observer::Make, &Observer::Play>;

 private:
  explicit Observer(RRef<PolicyAgent> agent);

  const RRef<PolicyAgent> agent_;
};

// Both the agent's and the observers' processes need this.
void RegisterObservers(rpc::Registry& registry);

}  // namespace baton::examples

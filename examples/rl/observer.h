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
#include "rpc/methods.h"
#include "rpc/registry.h"
#include "rpc/rref.h"

namespace baton::examples {

// What to play. An episode is the same whoever plays it, given what the agent
// answers.
struct PlayOrder {
  uint64_t seed = 1;
  int64_t first_episode = 0;
  int64_t episodes = 1;
  // In place of `episodes`: to ask so often, and keep no episode; 0: not so.
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

// Has the environment, and asks the agent what to do in it; lives at a worker.
// Holds no thread while it waits for an answer. Thread-safe.
class Observer {
 public:
  static std::unique_ptr<Observer> Make(const RRef<PolicyAgent>& agent);

  // Fails where the agent does not answer.
  Future<Played> Play(rpc::CallContext& call, const PlayOrder& order) const;

  using Exports = rpc::Methods<&Observer::Make, &Observer::Play>;

 private:
  explicit Observer(RRef<PolicyAgent> agent);

  const RRef<PolicyAgent> agent_;
};

// What both ends need.
void RegisterObservers(rpc::Registry& registry);

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/rl/policy.h"
#include "examples/rl/policy_agent.h"
#include "rpc/agent.h"

namespace baton::examples {

struct ReinforceOptions {
  PolicyOptions policy;
  BatchingOptions batching;
  uint64_t seed = 1;      // of the episodes
  int64_t observers = 0;  // at most; 0: one on each worker
  int64_t episodes = 16;  // of a round: those that one step learns from
  int64_t rounds = 200;   // at most
  double goal = 475;      // mean reward of the last kLastEpisodes
};
inline constexpr size_t kLastEpisodes = 100;

// How far a training is. Plain data.
struct Round {
  int64_t number = 0;      // from 1
  int64_t episodes = 0;    // all so far
  int64_t observers = 0;   // that played
  int64_t lost = 0;        // observers, so far
  double reward = 0;       // mean of the round
  double last_reward = 0;  // mean of the last kLastEpisodes
  double loss = 0;
};

// What agent and observers did meanwhile. Plain data.
struct ServiceFigures {
  double seconds = 0;  // that were played, learning left out
  std::vector<AnsweredBatch> batches;
  std::vector<float> latencies_us;  // of requests, as observers see them
};

struct Trained {
  bool solved = false;  // reached the goal
  std::vector<Round> rounds;
  ServiceFigures figures;
};

// Trains until the goal is reached or the rounds are over. `on_round` hears of
// each at once. Unavailable where no observer is left.
absl::StatusOr<Trained> Reinforce(
    rpc::Agent& agent, const ReinforceOptions& options,
    const std::function<void(const Round&)>& on_round);

// Learns nothing: each observer plays until it has made so many requests, after
// a tenth as many that do not count.
absl::StatusOr<ServiceFigures> MeasureRequests(rpc::Agent& agent,
                                               const ReinforceOptions& options,
                                               int64_t requests);

}  // namespace baton::examples

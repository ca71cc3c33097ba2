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
#include "examples/support/saving.h"
#include "rpc/agent.h"

namespace baton::examples {

struct ReinforceOptions {
  PolicyOptions policy;
  BatchingOptions batching;
  uint64_t seed = 1;      // for the episodes
  int64_t observers = 0;  // at most; 0: one on each worker
  int64_t episodes = 16;  // in a round; one optimizer step learns from them
  int64_t rounds = 200;   // at most
  double goal = 475;      // mean reward of the last kLastEpisodes
  Saving saving{};        // a round is a step and, without `every`, an epoch
};
inline constexpr size_t kLastEpisodes = 100;

// The progress of a training. Plain data.
struct Round {
  int64_t number = 0;      // from 1
  int64_t episodes = 0;    // all so far
  int64_t played = 0;      // episodes of the round
  int64_t observers = 0;   // that played in the round
  int64_t lost = 0;        // number of observers so far
  double reward = 0;       // mean of the round
  double last_reward = 0;  // mean of the last kLastEpisodes
  double loss = 0;
};

// What the agent and the observers did meanwhile. Plain data.
struct ServiceFigures {
  double seconds = 0;  // of playing, without learning
  std::vector<AnsweredBatch> batches;
  std::vector<float> latencies_us;  // of requests, as observers see them
};

struct Trained {
  bool solved = false;       // has reached the goal
  int64_t resumed_from = 0;  // the round before the first of these
  std::vector<Round> rounds;
  ServiceFigures figures;
};

// Trains until the goal is reached or the rounds are over, and calls `on_round`
// after each round; saves rounds and resumes from them as options.saving says.
// Unavailable if no observer is left, FailedPrecondition if a resumed training
// has had its rounds.
absl::StatusOr<Trained> Reinforce(
    rpc::Agent& agent, const ReinforceOptions& options,
    const std::function<void(const Round&)>& on_round);

// Measures requests without learning: each observer makes `requests` requests,
// after a tenth as many that do not count.
absl::StatusOr<ServiceFigures> MeasureRequests(rpc::Agent& agent,
                                               const ReinforceOptions& options,
                                               int64_t requests);

}  // namespace baton::examples

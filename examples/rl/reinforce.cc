// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/reinforce.h"

#include <chrono>
#include <deque>
#include <memory>
#include <numeric>

#include "core/status.h"
#include "examples/rl/observer.h"
#include "examples/rl/observers.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <typename Range>
double MeanOf(const Range& rewards) {
  return std::accumulate(rewards.begin(), rewards.end(), 0.0) /
         static_cast<double>(rewards.size());
}

std::vector<double> RewardsOf(const std::vector<Episode>& episodes) {
  std::vector<double> rewards;
  for (const Episode& episode : episodes)
    rewards.push_back(static_cast<double>(episode.reward()));
  return rewards;
}

void AddFigures(const std::vector<float>& latencies_us, PolicyAgent& policy,
                ServiceFigures& figures) {
  figures.latencies_us.insert(figures.latencies_us.end(), latencies_us.begin(),
                              latencies_us.end());
  const std::vector<AnsweredBatch> batches = policy.TakeAnswered();
  figures.batches.insert(figures.batches.end(), batches.begin(), batches.end());
}

}  // namespace

absl::StatusOr<Trained> Reinforce(
    rpc::Agent& agent, const ReinforceOptions& options,
    const std::function<void(const Round&)>& on_round) {
  const auto policy = std::make_shared<Policy>(options.policy);
  const auto asked = PolicyAgent::Make(agent, policy, options.batching);
  Observers observers(agent, asked, options.observers);
  Trained trained;
  std::deque<double> last;
  int64_t episodes = 0;
  for (int64_t number = 1; number <= options.rounds && !trained.solved;
       ++number) {
    const Clock::time_point begin = Clock::now();
    ASSIGN_OR_RETURN(
        const Played played,
        observers.Play(options.seed, (number - 1) * options.episodes,
                       options.episodes));
    trained.figures.seconds += SecondsSince(begin);
    AddFigures(played.latencies_us, *asked, trained.figures);
    if (played.episodes.empty()) continue;
    const std::vector<double> rewards = RewardsOf(played.episodes);
    last.insert(last.end(), rewards.begin(), rewards.end());
    while (last.size() > kLastEpisodes) last.pop_front();
    episodes += static_cast<int64_t>(played.episodes.size());
    Round round{.number = number,
                .episodes = episodes,
                .observers = observers.played(),
                .lost = observers.lost(),
                .reward = MeanOf(rewards),
                .last_reward = MeanOf(last)};
    trained.solved =
        last.size() == kLastEpisodes && round.last_reward > options.goal;
    if (!trained.solved) round.loss = policy->Learn(played.episodes);
    trained.rounds.push_back(round);
    on_round(round);
  }
  return trained;
}

absl::StatusOr<ServiceFigures> MeasureRequests(rpc::Agent& agent,
                                               const ReinforceOptions& options,
                                               int64_t requests) {
  const auto policy = std::make_shared<Policy>(options.policy);
  const auto asked = PolicyAgent::Make(agent, policy, options.batching);
  Observers observers(agent, asked, options.observers);
  RETURN_IF_ERROR(observers.Ask(options.seed, requests / 10 + 1).status());
  asked->TakeAnswered();
  ServiceFigures figures;
  const Clock::time_point begin = Clock::now();
  ASSIGN_OR_RETURN(const Played played, observers.Ask(options.seed, requests));
  figures.seconds = SecondsSince(begin);
  AddFigures(played.latencies_us, *asked, figures);
  return figures;
}

}  // namespace baton::examples

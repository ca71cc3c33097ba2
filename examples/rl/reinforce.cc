// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/reinforce.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
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

// How far a training has come, besides its policy.
struct Place {
  int64_t round = 0, episodes = 0;  // numbers of those done
  std::deque<double> last;          // rewards of the last kLastEpisodes

  void Add(const std::vector<double>& rewards) {
    last.insert(last.end(), rewards.begin(), rewards.end());
    while (last.size() > kLastEpisodes) last.pop_front();
    episodes += static_cast<int64_t>(rewards.size());
  }
};

// Saves a training, and resumes it.
class SavedRounds {
 public:
  SavedRounds(const Saving& saving, Policy& policy)
      : saving_(saving), policy_(policy) {
    if (saving_.on()) writer_.emplace(saving_.checkpoints);
  }

  // Returns where the training begins.
  absl::StatusOr<Place> Resume() {
    Place place;
    if (saving_.resume == Saving::Resume::kNo) return place;
    const absl::StatusOr<int64_t> step = ResumeFrom(
        saving_.checkpoints.folder, saving_.if_broken(),
        [&](const Checkpoint& saved) -> absl::Status {
          ASSIGN_OR_RETURN(const NamedTensors state, saved.Read(saved.Names()));
          const NamedTensors own = PartOf(state, kPlace);
          if (!own.contains(kEpisodes) || !own.contains(kLast)) {
            return absl::InvalidArgumentError(
                absl::StrCat(saved.path(), " is not of this program"));
          }
          const auto last = own.at(kLast).ToVector<double>();
          place = {.round = saved.step(),
                   .episodes = own.at(kEpisodes).ToVector<int64_t>().front(),
                   .last = {last.begin(), last.end()}};
          return Annotate(policy_.ImportState(state), saved.path());
        });
    if (!step.ok() && !absl::IsNotFound(step.status())) return step.status();
    return place;
  }
  absl::Status Save(const Place& place) {
    if (!saving_.on() || place.round % std::max<int64_t>(saving_.every, 1) != 0)
      return absl::OkStatus();
    NamedTensors state = policy_.ExportState();
    state.merge(
        AsPart(kPlace, {{kEpisodes, Tensor::From<int64_t>({place.episodes})},
                        {kLast, Tensor::From(std::vector<double>(
                                    place.last.begin(), place.last.end()))}}));
    return writer_->Save(place.round, state);
  }
  absl::Status Wait() {
    return saving_.on() ? writer_->Wait() : absl::OkStatus();
  }

 private:
  static constexpr char kPlace[] = "place", kEpisodes[] = "episodes",
                        kLast[] = "last";

  const Saving& saving_;
  Policy& policy_;
  std::optional<CheckpointWriter> writer_;
};

}  // namespace

absl::StatusOr<Trained> Reinforce(
    rpc::Agent& agent, const ReinforceOptions& options,
    const std::function<void(const Round&)>& on_round) {
  const auto policy = std::make_shared<Policy>(options.policy);
  const auto asked = PolicyAgent::Make(agent, policy, options.batching);
  Observers observers(agent, asked, options.observers);
  SavedRounds saved(options.saving, *policy);
  ASSIGN_OR_RETURN(Place place, saved.Resume());
  if (place.round >= options.rounds) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.saving.checkpoints.folder, " has a training of ",
                     place.round, " rounds: give more --rounds"));
  }
  Trained trained;
  trained.resumed_from = place.round;
  while (place.round < options.rounds && !trained.solved) {
    const Clock::time_point begin = Clock::now();
    ASSIGN_OR_RETURN(
        const Played played,
        observers.Play(options.seed, place.round * options.episodes,
                       options.episodes));
    ++place.round;
    trained.figures.seconds += SecondsSince(begin);
    AddFigures(played.latencies_us, *asked, trained.figures);
    if (played.episodes.empty()) continue;
    const std::vector<double> rewards = RewardsOf(played.episodes);
    place.Add(rewards);
    Round round{.number = place.round,
                .episodes = place.episodes,
                .played = static_cast<int64_t>(rewards.size()),
                .observers = observers.played(),
                .lost = observers.lost(),
                .reward = MeanOf(rewards),
                .last_reward = MeanOf(place.last)};
    trained.solved =
        place.last.size() == kLastEpisodes && round.last_reward > options.goal;
    if (!trained.solved) {
      round.loss = policy->Learn(played.episodes);
      RETURN_IF_ERROR(saved.Save(place));
    }
    trained.rounds.push_back(round);
    on_round(round);
  }
  RETURN_IF_ERROR(saved.Wait());
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

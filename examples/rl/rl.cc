// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a policy for CartPole by REINFORCE. Observers play episodes and ask
// one agent for each action:
//   baton-run --workers=8 --worker_program=rl -- rl --inference=plain,batched
// The workers are observers; the process that baton-run calls the trainer is
// the agent.

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "examples/rl/observer.h"
#include "examples/rl/reinforce.h"
#include "examples/rl/service.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/number_flags.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/saving.h"
#include "examples/support/saving_flags.h"
#include "examples/support/training_log.h"
#include "examples/support/unused_flags.h"
#include "rpc/spares.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(std::vector<std::string>, inference, {"batched"},
          "plain and batched, one after the other: a forward for each request, "
          "or for those of all observers together");
ABSL_FLAG(absl::Duration, max_wait, absl::Milliseconds(2),
          "how long a request waits for those of other observers");
ABSL_FLAG(std::vector<std::string>, hidden, {"128"},
          "widths of the policy's hidden layers");
ABSL_FLAG(int, episodes, 16, "that one step learns from");
ABSL_FLAG(int, rounds, 200, "steps at most");
ABSL_FLAG(double, goal, 475,
          "mean reward of the last 100 episodes that ends the training");
ABSL_FLAG(double, gamma, 0.99, "discount of rewards, for each step");
ABSL_FLAG(uint64_t, seed, 1, "of weights, starts and chances");
ABSL_FLAG(int, requests, 0,
          "of each observer: do not train, but measure how fast so many are "
          "answered");
ABSL_FLAG(std::vector<std::string>, observers, {"0"},
          "with --requests: how many of the workers observe, one number after "
          "the other; 0: all");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Learns to balance a pole: the workers play, and ask the trainer for "
    "every\n"
    "action. Workers may be lost and join meanwhile. Each round, or each\n"
    "--save_every, is saved into --checkpoint_dir.\n"
    "Default: --optimizer=adam --lr=0.02.";

absl::StatusOr<ReinforceOptions> OptionsFor(const std::string& inference) {
  RETURN_IF_ERROR(
      tools::CheckWord("--inference", inference, {"plain", "batched"}));
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_episodes, FLAGS_rounds));
  ReinforceOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.episodes = absl::GetFlag(FLAGS_episodes);
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.goal = absl::GetFlag(FLAGS_goal);
  options.batching.batched = inference == "batched";
  ASSIGN_OR_RETURN(options.batching.max_wait, tools::TimeOf(FLAGS_max_wait));
  ASSIGN_OR_RETURN(options.policy.hidden, NumbersOf(FLAGS_hidden, 1));
  ASSIGN_OR_RETURN(options.policy.optimizer,
                   OptimizerFromFlags(options.policy.optimizer));
  options.policy.gamma = absl::GetFlag(FLAGS_gamma);
  options.policy.seed = options.seed;
  ASSIGN_OR_RETURN(options.saving, SavingFromFlags());
  return options;
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  for (const std::string& inference : absl::GetFlag(FLAGS_inference))
    RETURN_IF_ERROR(OptionsFor(inference).status());
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_requests));
  if (!IsDefault("weights"))
    return tools::WrongFlag("weights", "is of no use here");
  if (absl::GetFlag(FLAGS_requests) > 0)
    RETURN_IF_ERROR(CheckUnused({"checkpoint_dir"}, "requests"));
  if (!IsDefault("checkpoint_dir") && absl::GetFlag(FLAGS_inference).size() > 1)
    return tools::WrongFlag("inference", "must be one with --checkpoint_dir");
  return NumbersOf(FLAGS_observers, 0).status();
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent,
                                  const std::string& inference,
                                  std::vector<Curve>& curves) {
  ASSIGN_OR_RETURN(const ReinforceOptions options, OptionsFor(inference));
  RETURN_IF_ERROR(PrepareToSave(options.saving));
  Curve shown{.name = inference};
  TrainingLog log(inference, "episodes", options.policy.optimizer.lr);
  ASSIGN_OR_RETURN(
      const Trained trained, Reinforce(agent, options, [&](const Round& round) {
        std::fprintf(stderr,
                     "%s  round %3d  %5d episodes  reward %5.1f, of the last "
                     "100 %5.1f  %d observers\n",
                     inference.c_str(), static_cast<int>(round.number),
                     static_cast<int>(round.episodes), round.reward,
                     round.last_reward, static_cast<int>(round.observers));
        shown.x.push_back(static_cast<double>(round.episodes));
        shown.y.push_back(round.last_reward);
        log.Add(round.number, round.played,
                {{"loss", round.loss}, {"reward", round.reward}});
      }));
  curves.push_back(shown);
  const Round& last = trained.rounds.back();
  Measurement measured = ServiceMeasurement(inference, trained.figures);
  measured.loss = last.loss;
  const std::vector<Detail> details = {{"solved", trained.solved},
                                       {"reward", last.last_reward},
                                       {"rounds", last.number},
                                       {"episodes", last.episodes},
                                       {"observers", last.observers},
                                       {"lost_observers", last.lost},
                                       {"resumed_from", trained.resumed_from},
                                       {"episodes_until", shown.x},
                                       {"rewards", shown.y}};
  measured.details.insert(measured.details.end(), details.begin(),
                          details.end());
  return measured;
}

absl::StatusOr<Measurement> Measure(rpc::Agent& agent,
                                    const std::string& inference,
                                    int64_t observers) {
  ASSIGN_OR_RETURN(ReinforceOptions options, OptionsFor(inference));
  const auto workers = static_cast<int64_t>(rpc::OthersButSpares(agent).size());
  if (observers > workers) {
    return tools::WrongFlag("observers",
                            absl::StrCat("has ", observers, ", but there are ",
                                         workers, " workers"));
  }
  options.observers = observers == 0 ? workers : observers;
  ASSIGN_OR_RETURN(
      const ServiceFigures figures,
      MeasureRequests(agent, options, absl::GetFlag(FLAGS_requests)));
  Measurement measured = ServiceMeasurement(
      absl::StrCat(inference, " ", options.observers), figures);
  measured.details.push_back({"observers", options.observers});
  return measured;
}

// Returns an error unless all variants that had to reach the goal have done so.
absl::Status CheckSolved(const std::vector<Measurement>& measurements) {
  for (const Measurement& measured : measurements) {
    for (const Detail& detail : measured.details) {
      if (detail.name != "solved" || std::get<bool>(detail.value)) continue;
      return absl::DeadlineExceededError(absl::StrCat(
          measured.variant, ": the goal was not reached within --rounds=",
          absl::GetFlag(FLAGS_rounds)));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(rpc::Agent& agent) {
  Findings findings;
  std::vector<Curve> curves;
  ASSIGN_OR_RETURN(const std::vector<int64_t> observers,
                   NumbersOf(FLAGS_observers, 0));
  for (const std::string& inference : absl::GetFlag(FLAGS_inference)) {
    if (absl::GetFlag(FLAGS_requests) == 0) {
      ASSIGN_OR_RETURN(Measurement measured, Train(agent, inference, curves));
      findings.measurements.push_back(std::move(measured));
      continue;
    }
    for (const int64_t count : observers) {
      ASSIGN_OR_RETURN(Measurement measured, Measure(agent, inference, count));
      findings.measurements.push_back(std::move(measured));
    }
  }
  findings.further = FormatPercentiles(findings.measurements, kServiceFigures);
  if (!curves.empty()) {
    findings.charts = {
        {"rewards", CurvesChart("rewards", "CartPole", "episodes",
                                "reward of the last 100", curves)}};
  }
  RETURN_IF_ERROR(Tell(findings));
  return CheckSolved(findings.measurements);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(argc, argv,
                                   {.workers = 8,
                                    .about = baton::examples::kAbout,
                                    .train = baton::examples::Run,
                                    .check = baton::examples::CheckFlags,
                                    .add = baton::examples::RegisterObservers});
}

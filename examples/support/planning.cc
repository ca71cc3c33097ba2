// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/planning.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/support/train_steps.h"
#include "models/distributed/profile.h"
#include "models/distributed/unequal_splits.h"

namespace baton::examples {
namespace {

// A slow worker takes minutes for large batches.
constexpr std::chrono::hours kMeasuring{1};
// The least number of steps to try a plan with. Short steps are repeated for
// longer, because on GPUs the first ones are timed, which slows them.
constexpr int kTriedSteps = 3;
constexpr std::chrono::milliseconds kTried{300};

// Returns the workers with stages, in the order of their first stages.
std::vector<std::string> WorkersOf(const dist::Plan& plan,
                                   const std::vector<std::string>& workers) {
  std::vector<std::string> used;
  for (int worker : plan.workers) {
    const std::string& name = workers[static_cast<size_t>(worker)];
    if (std::find(used.begin(), used.end(), name) == used.end())
      used.push_back(name);
  }
  return used;
}

std::string With(const std::vector<std::string>& refined_by) {
  if (refined_by.empty()) return "";
  return absl::StrCat(" with ", absl::StrJoin(refined_by, " "));
}

void Follow(const dist::Plan& plan, PipelineSettings& settings,
            std::vector<std::string>& workers) {
  settings.cuts = plan.cuts;
  settings.split_sizes = {plan.split_size};
  settings.schedule = plan.schedule;
  workers = WorkersOf(plan, workers);
}

// A plan with its settings, and how long a step of it takes.
struct Choice {
  dist::Plan plan;
  PipelineSettings settings;
  std::vector<std::string> workers;
  double seconds = 0;
};

// Returns the median time of a few steps.
absl::StatusOr<double> SecondsOf(const PlannedModel& planned,
                                 const TrainingBatch& sample,
                                 const Choice& choice) {
  ASSIGN_OR_RETURN(const auto model,
                   planned.make(choice.workers, choice.settings));
  ASSIGN_OR_RETURN(const TrainingBatch placed, model->Place(sample));
  Measurement measured;
  TrainSteps steps(*model, [&](const TrainSteps::Done& step) {
    measured.seconds.push_back(step.seconds);
    return absl::OkStatus();
  });
  // Runs them one after the other, because a step may use what the one before
  // has learnt.
  for (int i = 0; i < model->warm_up_steps(); ++i)
    RETURN_IF_ERROR(model->TrainStep(placed).status());
  const auto until = std::chrono::steady_clock::now() + kTried;
  for (int i = 0; i < kTriedSteps || std::chrono::steady_clock::now() < until;
       ++i)
    RETURN_IF_ERROR(steps.Begin(placed));
  RETURN_IF_ERROR(steps.Finish());
  return Summarize(measured).median_s;
}

// Sets the choice's time and prints it. Returns ResourceExhausted, and prints
// that, if a worker lacks the memory.
absl::Status Try(const PlannedModel& planned, const TrainingBatch& sample,
                 const std::string& what, Choice& choice) {
  const auto seconds = SecondsOf(planned, sample, choice);
  if (seconds.ok()) {
    choice.seconds = *seconds;
    std::printf("tried %s: took %.4g s\n", what.c_str(), choice.seconds);
  } else if (absl::IsResourceExhausted(seconds.status())) {
    std::printf("tried %s: %s\n", what.c_str(),
                std::string(seconds.status().message()).c_str());
  }
  std::fflush(stdout);
  return seconds.status();
}

// Adds plans with two stages per worker, for each size of micro-batch in
// `plans` and the next larger one. They are worth trying, because costs of
// links, and the effect of a size, are predicted less well than costs of
// stages. Shorter stages idle less at the ends of a step, so larger
// micro-batches may pay.
void AddPlansOfTwoStages(const dist::ClusterProfile& profile,
                         dist::PlanRequest request,
                         std::vector<dist::Plan>& plans) {
  if (request.schedule != "auto") return;
  request.stages_a_worker = 2;
  std::set<int64_t> sizes;
  for (const dist::Plan& plan : plans) {
    if (plan.workers.size() > 1) sizes.insert(plan.split_size);
  }
  if (sizes.empty()) return;
  int64_t larger = request.rows;
  for (const int64_t size : request.split_sizes) {
    if (size > *sizes.rbegin()) larger = std::min(larger, size);
  }
  if (larger < request.rows) sizes.insert(larger);
  for (const int64_t size : sizes) {
    request.split_sizes = {size};
    const auto best = dist::MakePlan(profile, request);
    // There may be too little memory for such a plan.
    if (best.ok() && best->workers.size() > 1) plans.push_back(*best);
  }
}

// Tries the plans and returns the fastest. Leaves out those for which a worker
// lacks the memory, unless it lacks it for all.
absl::StatusOr<Choice> TryPlans(const PlannedModel& planned,
                                const TrainingBatch& sample,
                                const PipelineSettings& settings,
                                const std::vector<std::string>& workers,
                                const std::vector<dist::Plan>& plans) {
  std::optional<Choice> best;
  absl::Status too_large;
  for (const dist::Plan& plan : plans) {
    Choice each{plan, settings, workers};
    Follow(plan, each.settings, each.workers);
    const absl::Status tried = Try(planned, sample, dist::ToString(plan), each);
    if (absl::IsResourceExhausted(tried)) {
      too_large = tried;
      continue;
    }
    RETURN_IF_ERROR(tried);
    if (!best || each.seconds < best->seconds) best = std::move(each);
  }
  if (!best) return too_large;
  return *std::move(best);
}

// A setting that neither a plan nor a flag has set, named after the flag that
// sets it.
struct Refinement {
  std::string flag;
  std::function<void(PipelineSettings&)> apply;
};
std::vector<Refinement> RefinementsOf(
    const PlannedModel& planned, const Choice& choice,
    const std::vector<std::vector<int64_t>>& unequal) {
  std::vector<Refinement> result;
  // They take more memory than the plan, whose limit they might exceed.
  if (choice.workers.size() < 2 || choice.settings.worker_mib > 0)
    return result;
  if (planned.on_gpus(choice.workers) && !choice.settings.overlap &&
      choice.settings.at_once == 1) {
    result.push_back({"--overlap", [](auto& to) { to.overlap = true; }});
    for (const int at_once : {2, 4}) {
      if (choice.plan.micro_batches.size() < 2 * static_cast<size_t>(at_once))
        continue;
      result.push_back({absl::StrCat("--at_once=", at_once),
                        [=](auto& to) { to.at_once = at_once; }});
    }
  }
  for (const std::vector<int64_t>& sizes : unequal) {
    result.push_back(
        {absl::StrCat("--micro_batches=", absl::StrJoin(sizes, "+")),
         [=](auto& to) { to.micro_batches = {sizes}; }});
  }
  return result;
}

// Returns what stands before the value.
std::string NameOf(const std::string& flag) {
  return flag.substr(0, flag.find('='));
}

// Tries the refinements one after the other and keeps those that make the step
// faster.
absl::Status Refine(const PlannedModel& planned, const TrainingBatch& sample,
                    const std::vector<Refinement>& refinements,
                    Choice& choice) {
  for (const Refinement& refinement : refinements) {
    Choice refined = choice;
    refinement.apply(refined.settings);
    std::vector<std::string>& flags = refined.settings.refined_by;
    std::erase_if(flags, [&](const std::string& flag) {
      return NameOf(flag) == NameOf(refinement.flag);
    });
    flags.push_back(refinement.flag);
    const absl::Status tried =
        Try(planned, sample, "the fastest of them with " + refinement.flag,
            refined);
    if (absl::IsResourceExhausted(tried)) continue;
    RETURN_IF_ERROR(tried);
    if (refined.seconds < choice.seconds) choice = std::move(refined);
  }
  return absl::OkStatus();
}

}  // namespace

bool StagesAreOpen(const PlannedModel& planned,
                   const std::vector<std::string>& workers,
                   PipelineSettings& settings) {
  if (!settings.choose_stages && settings.names_no_stages &&
      workers.size() > 1 && planned.on_gpus(workers)) {
    std::printf("no flag says how to cut the model: as with --stages=auto\n");
    settings.choose_stages = true;
    settings.cuts.clear();
    settings.split_sizes.clear();
    settings.schedule = {.name = "auto"};
  }
  return settings.choose_stages;
}

absl::StatusOr<dist::Plan> ChooseStages(const PlannedModel& planned,
                                        const TrainingBatch& sample,
                                        PipelineSettings& settings,
                                        std::vector<std::string>& workers) {
  dist::PlanRequest request;
  request.rows = sample.inputs.dim(0);
  request.split_sizes = settings.split_sizes.empty()
                            ? dist::SplitSizesFor(request.rows)
                            : settings.split_sizes;
  request.schedule = settings.schedule.name;
  request.most_held = settings.schedule.most_held;
  request.most_bytes = static_cast<double>(settings.worker_mib) * (1 << 20);
  request.parameter_copies = planned.parameter_copies;
  request.recompute = settings.recompute;
  std::printf("%d workers measure the model\n",
              static_cast<int>(workers.size()));
  std::fflush(stdout);
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(
      const dist::ClusterProfile profile,
      planned.measure(workers,
                      {.inputs = sample.inputs,
                       .targets = sample.targets,
                       .rows = dist::RowsToMeasure(request.split_sizes),
                       .loss = settings.loss,
                       .graph = settings.graph},
                      kMeasuring));
  const auto trials = static_cast<size_t>(settings.trials);
  ASSIGN_OR_RETURN(std::vector<dist::Plan> plans,
                   dist::MakePlans(profile, request, trials));
  Choice choice{plans.front(), settings, workers};
  if (trials == 0) {
    Follow(choice.plan, choice.settings, choice.workers);
  } else {
    AddPlansOfTwoStages(profile, request, plans);
    ASSIGN_OR_RETURN(choice,
                     TryPlans(planned, sample, settings, workers, plans));
    std::vector<std::vector<int64_t>> unequal;
    if (settings.split_sizes.empty()) {
      ASSIGN_OR_RETURN(unequal,
                       dist::UnequalSplits(profile, request, choice.plan));
    }
    RETURN_IF_ERROR(Refine(planned, sample,
                           RefinementsOf(planned, choice, unequal), choice));
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf("plan, after %.1f s: %s%s\n", took.count(),
              dist::ToString(choice.plan).c_str(),
              With(choice.settings.refined_by).c_str());
  std::fflush(stdout);
  settings = std::move(choice.settings);
  workers = std::move(choice.workers);
  return choice.plan;
}

std::string ComparePlan(const dist::Plan& plan,
                        const std::vector<std::string>& refined_by,
                        int64_t steps, std::vector<Measurement>& measurements) {
  std::string lines;
  for (Measurement& measurement : measurements) {
    if (!absl::StartsWith(measurement.variant, "pipelined")) continue;
    const double measured =
        Summarize(measurement).median_s / static_cast<double>(steps);
    const auto stages = static_cast<int64_t>(plan.workers.size());
    const std::vector<Detail> details = {
        {"stages", stages},
        {"cuts", absl::StrJoin(plan.cuts, ",")},
        {"refined_by", absl::StrJoin(refined_by, " ")},
        {"predicted_step_s", plan.seconds()},
        {"predicted_alone_s", plan.alone_s},
        {"measured_step_s", measured}};
    measurement.details.insert(measurement.details.end(), details.begin(),
                               details.end());
    absl::StrAppendFormat(&lines,
                          "%s: step of %.4g s predicted, %.4g s measured with "
                          "the optimizer's%s (%.2f of it)\n",
                          measurement.variant, plan.seconds(), measured,
                          With(refined_by), measured / plan.seconds());
  }
  return lines;
}

}  // namespace baton::examples

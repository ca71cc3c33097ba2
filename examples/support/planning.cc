// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/planning.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/support/train_steps.h"
#include "models/distributed/profile.h"

namespace baton::examples {
namespace {

// A slow worker takes minutes for large batches.
constexpr std::chrono::hours kMeasuring{1};
// More of short steps: the first ones are timed, which on GPUs takes time.
constexpr int kTriedSteps = 3;
constexpr std::chrono::milliseconds kTried{300};

// Those with stages, in the order of their first.
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

void Follow(const dist::Plan& plan, PipelineSettings& settings,
            std::vector<std::string>& workers) {
  settings.cuts = plan.cuts;
  settings.split_sizes = {plan.split_size};
  settings.schedule = plan.schedule;
  workers = WorkersOf(plan, workers);
}

// The median time of a few steps, in seconds.
absl::StatusOr<double> TryPlan(const PlannedModel& planned,
                               const TrainingBatch& sample,
                               const dist::Plan& plan,
                               PipelineSettings settings,
                               std::vector<std::string> workers) {
  Follow(plan, settings, workers);
  ASSIGN_OR_RETURN(const auto model, planned.make(workers, settings));
  ASSIGN_OR_RETURN(const TrainingBatch placed, model->Place(sample));
  Measurement measured;
  TrainSteps steps(*model, [&](const TrainSteps::Done& step) {
    measured.seconds.push_back(step.seconds);
    return absl::OkStatus();
  });
  // One by one: each may learn from the one before.
  for (int i = 0; i < model->warm_up_steps(); ++i)
    RETURN_IF_ERROR(model->TrainStep(placed).status());
  const auto until = std::chrono::steady_clock::now() + kTried;
  for (int i = 0; i < kTriedSteps || std::chrono::steady_clock::now() < until;
       ++i)
    RETURN_IF_ERROR(steps.Begin(placed));
  RETURN_IF_ERROR(steps.Finish());
  return Summarize(measured).median_s;
}

// To be tried as well, for each size of micro-batches among the plans: what
// links cost is told less well than what stages do, and how much a size costs
// less well than where to cut.
void AddPlansOfTwoStages(const dist::ClusterProfile& profile,
                         dist::PlanRequest request,
                         std::vector<dist::Plan>& plans) {
  if (request.schedule != "auto") return;
  request.stages_a_worker = 2;
  std::set<int64_t> sizes;
  for (const dist::Plan& plan : plans) {
    if (plan.workers.size() > 1) sizes.insert(plan.split_size);
  }
  for (const int64_t size : sizes) {
    request.split_sizes = {size};
    const auto best = dist::MakePlan(profile, request);
    // There may be too little memory.
    if (best.ok() && best->workers.size() > 1) plans.push_back(*best);
  }
}

// The fastest.
absl::StatusOr<dist::Plan> TryPlans(const PlannedModel& planned,
                                    const TrainingBatch& sample,
                                    const PipelineSettings& settings,
                                    const std::vector<std::string>& workers,
                                    const std::vector<dist::Plan>& plans) {
  const dist::Plan* best = nullptr;
  double best_s = 0;
  for (const dist::Plan& plan : plans) {
    ASSIGN_OR_RETURN(const double seconds,
                     TryPlan(planned, sample, plan, settings, workers));
    std::printf("tried %s: took %.4g s\n", dist::ToString(plan).c_str(),
                seconds);
    std::fflush(stdout);
    if (best != nullptr && seconds >= best_s) continue;
    best = &plan;
    best_s = seconds;
  }
  return *best;
}

}  // namespace

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
  request.recompute = settings.checkpoint_activations;
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
  dist::Plan plan = plans.front();
  if (trials > 0) {
    AddPlansOfTwoStages(profile, request, plans);
    ASSIGN_OR_RETURN(plan, TryPlans(planned, sample, settings, workers, plans));
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf("plan, after %.1f s: %s\n", took.count(),
              dist::ToString(plan).c_str());
  std::fflush(stdout);
  Follow(plan, settings, workers);
  return plan;
}

std::string ComparePlan(const dist::Plan& plan, int64_t steps,
                        std::vector<Measurement>& measurements) {
  std::string lines;
  for (Measurement& measurement : measurements) {
    // The plan is for several workers.
    if (measurement.split_size == 0 ||
        absl::StartsWith(measurement.variant, "local"))
      continue;
    const double measured =
        Summarize(measurement).median_s / static_cast<double>(steps);
    const auto stages = static_cast<int64_t>(plan.workers.size());
    const std::vector<Detail> details = {
        {"stages", stages},
        {"cuts", absl::StrJoin(plan.cuts, ",")},
        {"predicted_step_s", plan.seconds()},
        {"predicted_alone_s", plan.alone_s},
        {"measured_step_s", measured}};
    measurement.details.insert(measurement.details.end(), details.begin(),
                               details.end());
    absl::StrAppendFormat(&lines,
                          "%s: step of %.4g s predicted, %.4g s measured with "
                          "the optimizer's (%.2f of it)\n",
                          measurement.variant, plan.seconds(), measured,
                          measured / plan.seconds());
  }
  return lines;
}

}  // namespace baton::examples

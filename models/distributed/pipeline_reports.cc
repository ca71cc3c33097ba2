// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/step_trace.h"

// What the trainer learns from the workers' reports of steps, for later ones.
namespace baton::dist {
namespace {

// Steps with default costs; the last of them measures those for later steps.
constexpr int kUsualSteps = 2;

}  // namespace

absl::StatusOr<Pipeline::Ordered*> Pipeline::OrderedFor(const StepPlan& plan) {
  const auto [at, is_new] = ordered_.try_emplace(plan.rows);
  Ordered& ordered = at->second;
  if (is_new) {
    ordered.work = WorkFor(plan);
    ordered.rows = SplitRows(plan.rows, plan.micro_batches);
    ordered.meter = CostMeter(stages_.size());
  } else if (options_.schedule.name == "auto" && !ordered.by_costs &&
             ordered.steps >= kUsualSteps) {
    ordered.by_costs = true;
    ordered.bubbles.clear();
    ordered.awaited.clear();
    ordered.meter.Describe(ordered.work);
  } else if (!ordered.schedule.workers.empty()) {
    return &ordered;
  }
  told_.remove_if([&](const Told& told) {
    return told.plan.training && told.plan.rows == plan.rows;
  });
  ASSIGN_OR_RETURN(ordered.schedule,
                   MakeSchedule(options_.schedule, ordered.work));
  return &ordered;
}

void Pipeline::Learn(const std::vector<GroupReport>& reports,
                     Ordered& ordered) {
  if (++ordered.steps < kUsualSteps) return;
  if (const std::optional<double> bubble = BubbleOf(reports))
    ordered.bubbles.push_back(*bubble);
  if (const std::optional<double> awaited = AwaitedOf(reports))
    ordered.awaited.push_back(*awaited);
  const std::vector<double> sizes = GroupSizes(ordered.rows);
  for (size_t worker = 0; worker < reports.size(); ++worker) {
    std::set<int> devices;
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (places_.worker_of_stage[i] == static_cast<int>(worker))
        devices.insert(places_.device_of_stage[i]);
    }
    auto device = devices.begin();
    for (const StepTimes& times : reports[worker].times) {
      if (*device == 0) ordered.meter.AddStart(times.until_begin);
      ordered.meter.AddGap(times.gap);
      const Program program =
          Ungrouped(ordered.schedule.workers[static_cast<size_t>(*device++)],
                    options_.at_once, static_cast<int>(ordered.rows.size()));
      const size_t timed = std::min(program.size(), times.instructions.size());
      for (size_t i = 0; i < timed; ++i) {
        ordered.meter.Add(
            program[i], sizes[static_cast<size_t>(program[i].micro_batch)],
            times.instructions[i].all, times.instructions[i].tail);
      }
      for (const CopyTime& copy : times.copies)
        ordered.meter.AddCopy(copy.ends.from, copy.ends.to, copy.seconds);
    }
  }
}

void Pipeline::LearnWindows(const std::vector<GroupReport>& reports,
                            Told& told) {
  for (const GroupReport& report : reports) {
    for (const MadeWindow& made : report.windows) {
      if (made.why_not.empty()) {
        (made.of_gpu ? told.gpu_windows : told.windows).push_back(made.ends);
      } else {
        told.why_no_window =
            absl::StrCat("from stage ", made.ends.from, " to stage ",
                         made.ends.to, ": ", made.why_not);
      }
    }
  }
}

void Pipeline::LearnRecordings(const std::vector<GroupReport>& reports,
                               Told& told) {
  told.kernels = 0;
  for (const GroupReport& report : reports) {
    if (!report.why_not_recorded.has_value()) return;
    told.kernels += report.kernels;
    if (report.why_not_recorded->empty()) continue;
    told.recording = Told::Recording::kRefused;
    told.why_not_recorded = *report.why_not_recorded;
    // GPU windows are useless without recordings.
    if (!told.gpu_windows.empty())
      told.why_no_window =
          absl::StrCat("between GPUs, as the step could not be recorded: ",
                       *report.why_not_recorded);
    return;
  }
  told.recording = Told::Recording::kMade;
}

void Pipeline::Collect() {
  const auto over = [this](const UnderWay& step) {
    if (!step.reports.ready()) return false;
    const auto reports = step.reports.Await();
    if (step.scaled && reports.ok())
      loss_scale_->Adapt(reports->front().overflowed);
    const auto told = std::find_if(
        told_.begin(), told_.end(),
        [&](const Told& each) { return each.plan.id == step.plan; });
    if (told == told_.end()) return true;
    if (!reports.ok()) {
      // The failed step may have been the one that was to make windows.
      told->asked = !told->windows.empty() || !told->gpu_windows.empty() ||
                    !told->why_no_window.empty() ||
                    told->recording == Told::Recording::kMade;
      if (told->recording == Told::Recording::kAsked)
        told->recording = Told::Recording::kToBeAsked;
      return true;
    }
    told->known = true;
    LearnWindows(*reports, *told);
    LearnRecordings(*reports, *told);
    if (step.counts) Learn(*reports, ordered_.at(told->plan.rows));
    return true;
  };
  under_way_.erase(std::remove_if(under_way_.begin(), under_way_.end(), over),
                   under_way_.end());
}

double Pipeline::loss_scale() {
  Collect();
  return loss_scale_ ? loss_scale_->value() : 0;
}

absl::StatusOr<PipelineTiming> Pipeline::Timing() {
  Collect();
  if (last_ == nullptr || last_->bubbles.empty()) {
    return absl::FailedPreconditionError(
        "no step has been timed yet except the first, which does not count");
  }
  PipelineTiming timing;
  timing.schedule = last_->schedule;
  timing.bubble = MedianOf(last_->bubbles);
  timing.awaited = MedianOf(last_->awaited);
  Workload work = last_->work;
  last_->meter.Describe(work);
  ASSIGN_OR_RETURN(timing.predicted, Simulate(last_->schedule, work));
  return timing;
}

}  // namespace baton::dist

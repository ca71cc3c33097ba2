// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "models/distributed/layout.h"

namespace baton::dist {
namespace {

constexpr int64_t kMostMicroBatches = 32;
// The number of partial cuts with the same end that are kept while stages are
// added: all of them if there are few stages and units. With many, the number
// is limited so that its product with the number of units to add, for each
// split, stays below kMostAdded.
constexpr size_t kBeam = 64, kMostAdded = 100'000;
// The maximum of instructions times stages that are simulated in total, which
// bounds the time of planning.
constexpr int64_t kMostSimulated = 500'000;
constexpr double kNever = std::numeric_limits<double>::infinity();

absl::Status CheckProfiles(const ClusterProfile& profile) {
  const auto wrong = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("plan: ", parts...));
  };
  const std::vector<Profile>& workers = profile.workers;
  if (workers.empty() || profile.links.size() != workers.size())
    return wrong("there are profiles of ", workers.size(), " workers and ",
                 profile.links.size(), " with links");
  const std::vector<std::string>& units = workers.front().units;
  for (size_t i = 0; i < workers.size(); ++i) {
    const Profile& one = workers[i];
    const auto misses = [&](const std::vector<UnitCosts>& costs) {
      double time = 0, bytes = 0, least = 0;
      for (const auto& [seconds, held, output] : costs) {
        const auto [f, b, w] = seconds;
        least = std::min({least, f, b, w, held, output});
        time += f + b + w;
        bytes += held + output;
      }
      return costs.size() != units.size() || least < 0 || !(time > 0) ||
             !std::isfinite(time + bytes);
    };
    if (units.empty() || one.units != units ||
        one.parameter_bytes.size() != units.size() || one.rows.empty() ||
        one.rows.front() < 1 ||
        !std::is_sorted(one.rows.begin(), one.rows.end()) ||
        one.costs.size() != one.rows.size() ||
        std::any_of(one.costs.begin(), one.costs.end(), misses) ||
        profile.links[i].size() != workers.size() ||
        !(profile.places.empty() || profile.places.size() == workers.size()))
      return wrong("the profile of worker ", i, " is not whole");
  }
  return absl::OkStatus();
}

// Searches for the best `count` plans of one request. Confined to one call.
class Planner {
 public:
  Planner(const ClusterProfile& profile, const PlanRequest& request,
          size_t count)
      : profile_(profile),
        request_(request),
        count_(count),
        costs_(profile, request.parameter_copies, request.recompute,
               request.most_bytes) {}

  absl::StatusOr<std::vector<Plan>> Run() {
    RETURN_IF_ERROR(MakeSplits());
    RETURN_IF_ERROR(MakeTeams());
    const auto alone = teams_.begin();
    RETURN_IF_ERROR(Search(alone, alone + 1, 1));
    // Search first with one cut, whose times then bound the full search.
    for (const size_t width : {size_t{1}, kBeam})
      RETURN_IF_ERROR(Search(alone + 1, teams_.end(), width));
    if (!best_.empty()) return Best();
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no cut of %d units over %d workers keeps within %.0f bytes a "
        "worker%s: at least %.0f would be needed",
        units(), profile_.workers.size(), least_.limit,
        request_.most_bytes > 0
            ? std::string()
            : absl::StrFormat(" (%.0f%% of what its GPU has free)",
                              100 * LayoutCosts::kUsableShare),
        least_.bytes));
  }

 private:
  size_t units() const { return profile_.workers.front().units.size(); }

  absl::Status MakeSplits() {
    std::vector<int64_t> sizes = request_.split_sizes;
    if (request_.rows < 1)
      return absl::InvalidArgumentError("plan: a batch needs at least one row");
    if (sizes.empty()) sizes = SplitSizesFor(request_.rows);
    int64_t least = 1;
    for (const Profile& worker : profile_.workers)
      least = std::max(least, worker.least_rows);
    for (int64_t size : sizes) {
      if (size < 1 || size > request_.rows)
        return absl::InvalidArgumentError(
            absl::StrCat("plan: ", request_.rows,
                         " rows do not make micro-batches of ", size));
      BatchSplit split(profile_, request_.rows, size);
      if (split.parts.back().size() >= least)
        splits_.push_back(std::move(split));
    }
    if (!splits_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "plan: the model trains on ", least,
        " rows at least, which no micro-batches of ", request_.rows, " have"));
  }

  // The fastest workers, in the profile's order.
  std::vector<int> Fastest(size_t count) const {
    std::vector<int> workers(profile_.workers.size());
    std::iota(workers.begin(), workers.end(), 0);
    const std::vector<UnitSums>& sums = splits_.front().units;
    const auto step = [&](int worker) {
      return sums[static_cast<size_t>(worker)].step_s();
    };
    std::stable_sort(workers.begin(), workers.end(),
                     [&](int a, int b) { return step(a) < step(b); });
    workers.resize(count);
    std::sort(workers.begin(), workers.end());
    return workers;
  }

  // The first team is one worker alone.
  absl::Status MakeTeams() {
    const std::string& name = request_.schedule;
    if (request_.stages_a_worker < 1 || request_.stages_a_worker > 2)
      return absl::InvalidArgumentError(
          absl::StrCat("plan: a worker has one stage or two, not ",
                       request_.stages_a_worker));
    for (size_t count = 1; count <= profile_.workers.size(); ++count) {
      const auto k = static_cast<int>(count);
      // Some schedules need two stages per worker.
      const int each = name == "auto" ? request_.stages_a_worker : 1;
      absl::StatusOr<std::vector<int>> placed = PlaceStages(name, each * k, k);
      if (!placed.ok() || *absl::c_max_element(*placed) + 1 < k)
        placed = PlaceStages(name, 2 * k, k);
      RETURN_IF_ERROR(placed.status());
      if (count == 1) placed = std::vector<int>{0};
      if (placed->size() <= units())
        teams_.push_back({Fastest(count), *std::move(placed)});
    }
    return absl::OkStatus();
  }

  using Teams = std::vector<StageTeam>::const_iterator;
  absl::Status Search(Teams begin, Teams end, size_t width) {
    std::vector<StageLayout> layouts;
    for (Teams team = begin; team != end; ++team) {
      const size_t each =
          splits_.size() * team->placed.size() * units() * units();
      const size_t kept = std::clamp(kMostAdded / each, size_t{1}, width);
      for (const BatchSplit& split : splits_)
        AddLayouts(split, *team, kept, layouts);
    }
    return JudgeAll(std::move(layouts));
  }

  // Adds one stage after the other. Of the layouts that end at the same unit,
  // keeps the `width` ones with the lowest bounds, and none whose bound is not
  // below the slowest of the best plans.
  void AddLayouts(const BatchSplit& split, const StageTeam& team, size_t width,
                  std::vector<StageLayout>& layouts) {
    const size_t stages = team.placed.size();
    std::vector<StageLayout> open(1);
    open[0].split = &split;
    open[0].team = &team;
    for (size_t stage = 0; stage < stages; ++stage) {
      std::vector<std::vector<StageLayout>> by_end(units() + 1);
      const bool is_last = stage + 1 == stages;
      const size_t last = units() - (stages - 1 - stage);
      for (StageLayout& one : open) {
        one.ends.push_back(one.ends.empty() ? 1 : one.ends.back() + 1);
        size_t& end = one.ends.back();
        if (is_last) end = units();
        const double before = one.least_s;
        for (; end <= last; ++end) {
          one.least_s = std::max(before, costs_.LeastSecondsOfLast(one));
          // Layouts with later ends are no better.
          if (one.least_s >= bound_s() || !Fits(one)) break;
          by_end[end].push_back(one);
        }
      }
      open.clear();
      for (std::vector<StageLayout>& some : by_end) {
        const size_t kept = std::min(width, some.size());
        std::partial_sort(some.begin(), some.begin() + static_cast<long>(kept),
                          some.end(), IsBetter);
        std::move(some.begin(), some.begin() + static_cast<long>(kept),
                  std::back_inserter(open));
      }
    }
    std::move(open.begin(), open.end(), std::back_inserter(layouts));
  }

  static bool IsBetter(const StageLayout& a, const StageLayout& b) {
    return a.least_s < b.least_s;
  }
  // A plan that takes at least this long is not among the best.
  double bound_s() const {
    return best_.size() < count_ ? kNever : best_.back().seconds();
  }

  // If there is enough memory for one micro-batch in flight, some order of work
  // fits.
  bool Fits(const StageLayout& layout) {
    return !costs_.limits() || Fits(*layout.team, costs_.LeastBytes(layout));
  }
  bool Fits(const StageTeam& team, const std::vector<double>& bytes) {
    const LayoutCosts::Need most = costs_.LargestNeed(team, bytes);
    if (most.share() <= 1) return true;
    if (most.share() < least_.share()) least_ = most;
    return false;
  }

  absl::Status JudgeAll(std::vector<StageLayout> layouts) {
    std::stable_sort(layouts.begin(), layouts.end(), IsBetter);
    int64_t simulated = 0;
    for (const StageLayout& layout : layouts) {
      if (layout.least_s >= bound_s()) break;
      if (!best_.empty() && simulated > kMostSimulated) break;
      if (!Fits(layout)) continue;
      const auto stages = static_cast<int64_t>(layout.ends.size());
      simulated += 3 * stages * stages *
                   static_cast<int64_t>(layout.split->parts.size());
      RETURN_IF_ERROR(Judge(layout));
    }
    return absl::OkStatus();
  }

  // Uses the fitting order that holds the most activations.
  absl::Status Judge(const StageLayout& layout) {
    const Workload work = costs_.WorkOf(layout);
    ScheduleChoice choice{.name = request_.schedule,
                          .most_held = request_.most_held};
    if (layout.ends.size() == 1) choice.name = "1f1b";
    const double usual =
        choice.most_held > 0
            ? choice.most_held
            : 2 * static_cast<double>(layout.team->workers.size());
    const bool adapts = choice.name == "auto" && costs_.limits();
    for (double held = usual; held >= 1; --held) {
      if (adapts) choice.most_held = held;
      ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(choice, work));
      ASSIGN_OR_RETURN(Simulation simulation, Simulate(schedule, work));
      std::vector<double> bytes = costs_.PeakBytes(layout, simulation);
      if (Fits(*layout.team, bytes)) {
        Keep(layout, choice, std::move(simulation), std::move(bytes));
        break;
      }
      if (!adapts) break;
    }
    return absl::OkStatus();
  }

  void Keep(const StageLayout& layout, const ScheduleChoice& choice,
            Simulation simulation, std::vector<double> bytes) {
    Plan plan;
    for (size_t i = 0; i < layout.ends.size(); ++i) {
      if (i > 0)
        plan.cuts.push_back(
            profile_.workers.front().units[layout.ends[i - 1] - 1]);
      plan.workers.push_back(layout.worker(i));
    }
    plan.split_size = layout.split->size;
    for (const RowRange& part : layout.split->parts)
      plan.micro_batches.push_back(part.size());
    plan.schedule = choice;
    plan.predicted = std::move(simulation);
    plan.bytes = std::move(bytes);
    const auto is_same = [&](const Plan& other) {
      return other.workers == plan.workers && other.cuts == plan.cuts &&
             other.split_size == plan.split_size;
    };
    if (absl::c_any_of(best_, is_same)) return;
    const auto is_faster = [](const Plan& a, const Plan& b) {
      return a.seconds() < b.seconds();
    };
    if (plan.workers.size() == 1 && (!alone_ || is_faster(plan, *alone_)))
      alone_ = plan;
    best_.insert(absl::c_upper_bound(best_, plan, is_faster), std::move(plan));
    if (best_.size() > count_) best_.pop_back();
  }

  std::vector<Plan> Best() {
    const auto is_alone = [](const Plan& plan) {
      return plan.workers.size() == 1;
    };
    if (alone_ && absl::c_none_of(best_, is_alone)) best_.push_back(*alone_);
    for (Plan& plan : best_) plan.alone_s = alone_ ? alone_->seconds() : 0;
    return std::move(best_);
  }

  const ClusterProfile& profile_;
  const PlanRequest& request_;
  const size_t count_;
  const LayoutCosts costs_;
  std::vector<BatchSplit> splits_;
  std::vector<StageTeam> teams_;
  std::vector<Plan> best_;  // the best first; at most count_
  std::optional<Plan> alone_;
  LayoutCosts::Need least_ = {
      kNever, 1};  // of the plan that exceeded its limits the least
};

}  // namespace

std::vector<int64_t> SplitSizesFor(int64_t rows) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; parts <= std::min(rows, kMostMicroBatches); ++parts) {
    const int64_t size = (rows + parts - 1) / parts;
    if (sizes.empty() || size < sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int64_t> RowsToMeasure(std::vector<int64_t> split_sizes) {
  std::sort(split_sizes.begin(), split_sizes.end(), std::greater<>());
  std::vector<int64_t> rows;
  for (int64_t size : split_sizes) {
    const bool is_least = size == split_sizes.back();
    if (rows.empty() || 5 * size <= 3 * rows.back() ||
        (is_least && size < rows.back()))
      rows.push_back(size);
  }
  return rows;
}

std::string ToString(const Plan& plan) {
  const size_t stages = plan.workers.size();
  std::string text = stages == 1 ? std::string("one worker alone")
                                 : absl::StrCat(stages, " stages, cut after ",
                                                absl::StrJoin(plan.cuts, ", "));
  absl::StrAppend(&text, "; ");
  const auto& parts = plan.micro_batches;
  if (parts.size() == 1) {
    absl::StrAppend(&text, "the batch as a whole");
  } else {
    absl::StrAppend(&text, parts.size(), " micro-batches of ", parts.front());
    if (parts.back() != parts.front())
      absl::StrAppend(&text, ", the last of ", parts.back());
  }
  absl::StrAppendFormat(&text, "; schedule %s; predicted %.4g s a step",
                        plan.schedule.name, plan.seconds());
  if (stages > 1 && plan.alone_s > 0)
    absl::StrAppendFormat(&text, ", one worker alone %.4g s", plan.alone_s);
  return text;
}

absl::StatusOr<Plan> MakePlan(const ClusterProfile& profile,
                              const PlanRequest& request) {
  ASSIGN_OR_RETURN(std::vector<Plan> plans, MakePlans(profile, request, 1));
  return std::move(plans.front());
}

absl::StatusOr<std::vector<Plan>> MakePlans(const ClusterProfile& profile,
                                            const PlanRequest& request,
                                            size_t count) {
  RETURN_IF_ERROR(CheckProfiles(profile));
  return Planner(profile, request, std::max<size_t>(count, 1)).Run();
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/unequal_splits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/status.h"
#include "models/distributed/layout.h"

namespace baton::dist {
namespace {

using Parts = std::vector<int64_t>;

// Gives half of the part's rows to the parts in [begin, end), from the first on
// as evenly as possible.
void Halve(Parts& parts, size_t at, size_t begin, size_t end) {
  int64_t moved = parts[at] / 2;
  parts[at] -= moved;
  for (size_t to = begin; to < end; ++to) {
    const int64_t share = (moved + static_cast<int64_t>(end - to) - 1) /
                          static_cast<int64_t>(end - to);
    parts[to] += share;
    moved -= share;
  }
}

std::vector<Parts> Shapes(const Parts& equal) {
  const size_t last = equal.size() - 1;
  if (last == 0) return {};
  std::vector<Parts> shapes(last > 1 ? 3 : 2, equal);
  Halve(shapes[0], 0, last, last + 1);
  Halve(shapes[1], last, 0, 1);
  if (last > 1) {
    Halve(shapes[2], 0, 1, last);
    Halve(shapes[2], last, 1, last);
  }
  return shapes;
}

// The workers and cuts of a plan.
struct Placed {
  StageTeam team;
  std::vector<size_t> ends;
};
Placed PlacedBy(const Plan& plan, const std::vector<std::string>& units) {
  Placed placed;
  for (const int worker : plan.workers) {
    const auto found = absl::c_find(placed.team.workers, worker);
    placed.team.placed.push_back(
        static_cast<int>(found - placed.team.workers.begin()));
    if (found == placed.team.workers.end())
      placed.team.workers.push_back(worker);
  }
  for (const std::string& cut : plan.cuts) {
    placed.ends.push_back(
        static_cast<size_t>(absl::c_find(units, cut) - units.begin()) + 1);
  }
  placed.ends.push_back(units.size());
  return placed;
}

}  // namespace

absl::StatusOr<std::vector<Parts>> UnequalSplits(const ClusterProfile& profile,
                                                 const PlanRequest& request,
                                                 const Plan& plan) {
  std::vector<Parts> result;
  int64_t least_rows = 1;
  for (const Profile& worker : profile.workers)
    least_rows = std::max(least_rows, worker.least_rows);
  const Placed placed = PlacedBy(plan, profile.workers.front().units);
  const LayoutCosts costs(profile, request.parameter_copies, request.recompute,
                          request.most_bytes);
  for (const Parts& parts : Shapes(plan.micro_batches)) {
    if (*absl::c_min_element(parts) < least_rows) continue;
    const BatchSplit split(profile, parts);
    StageLayout layout;
    layout.split = &split;
    layout.team = &placed.team;
    layout.ends = placed.ends;
    const Workload work = costs.WorkOf(layout);
    ASSIGN_OR_RETURN(const Schedule schedule,
                     MakeSchedule(plan.schedule, work));
    ASSIGN_OR_RETURN(const Simulation simulation, Simulate(schedule, work));
    const std::vector<double> bytes = costs.PeakBytes(layout, simulation);
    if (costs.LargestNeed(placed.team, bytes).share() > 1) continue;
    const bool small_first = parts.front() < parts.back();
    if (small_first || simulation.makespan < plan.seconds())
      result.push_back(parts);
  }
  return result;
}

}  // namespace baton::dist

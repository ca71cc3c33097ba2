// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/profile.h"
#include "models/distributed/schedules.h"
#include "models/distributed/simulation.h"

// Searches for the fastest way to train a model on the workers that there are,
// from the measured costs of its units.
namespace baton::dist {

struct PlanRequest {
  int64_t rows = 0;  // in a batch
  // The sizes of micro-batches to choose from; the last micro-batch of a batch
  // has what is left. Empty: SplitSizesFor(rows).
  std::vector<int64_t> split_sizes = {};
  std::string schedule = "auto";
  double most_held = 0;  // see Workload::most_held
  // The number of stages that each worker has with "auto" if several workers
  // take part: 1 or 2. With 2, a worker waits less for the first micro-batch,
  // but each micro-batch crosses more links.
  int stages_a_worker = 1;
  // Memory that a worker may use. Counts parameters, what belongs to them,
  // activations that wait for their backward, and windows of links, but not the
  // temporary memory of instructions. 0: for a GPU LayoutCosts::kUsableShare of
  // what it has free, for a CPU no limit.
  double most_bytes = 0;
  // The number of copies of each parameter: itself, its gradient, and what the
  // optimizer keeps.
  double parameter_copies = 2;
  bool recompute = false;  // see StageSpec::recompute
};

// Plain data.
struct Plan {
  std::vector<std::string> cuts;  // for each stage but the last, the unit after
                                  // which it ends
  std::vector<int> workers;  // of each stage, as indices in the ClusterProfile
  int64_t split_size = 0;
  std::vector<int64_t> micro_batches;  // the rows of each, by split_size
  ScheduleChoice schedule;
  // The predicted step without the optimizer, in seconds. Its workers are
  // numbered from 0 in the order in which the stages first name them.
  Simulation predicted;
  std::vector<double> bytes;  // peak memory of each worker, numbered as in
                              // `predicted`
  // The best predicted step of the fastest worker alone; 0 if it lacks the
  // memory.
  double alone_s = 0;

  double seconds() const { return predicted.makespan; }
};

// Returns a text for people: "2 stages, cut after layer2.1; 10 micro-batches of
// 12; ...".
std::string ToString(const Plan& plan);

// The split sizes that are worth considering for batches of `rows`, in
// descending order: those that give 1 to 32 micro-batches of nearly equal size.
std::vector<int64_t> SplitSizesFor(int64_t rows);
// Returns those of `split_sizes` to measure so that Profile::At can interpolate
// the others.
std::vector<int64_t> RowsToMeasure(std::vector<int64_t> split_sizes);

// Returns the plan whose simulated step is the shortest. Candidates are all
// combinations of the fastest k workers, for each k, in the order of the
// profile; all cuts between units; all split sizes; and, if the schedule leaves
// it open, different orders of work. Transfers take the measured time for each
// micro-batch's size. One worker alone, with 1f1b, is a candidate, too, and is
// taken if nothing is faster. If there are too many cuts to simulate (some
// hundred), those with the best lower bounds are simulated: a step takes at
// least as long as the busiest worker's work plus what must precede and follow
// it.
//
// Returns InvalidArgument for a request and a profile that do not fit each
// other or the schedule, and ResourceExhausted, which names the limit and the
// least memory that a plan would need, if no plan stays within it.
absl::StatusOr<Plan> MakePlan(const ClusterProfile& profile,
                              const PlanRequest& request);
// Returns the best `count` plans, the best first, followed by the plan with one
// worker alone if it is not among them and has the memory: these are the plans
// to try if the predictions differ by less than their error. Errors are those
// of MakePlan.
absl::StatusOr<std::vector<Plan>> MakePlans(const ClusterProfile& profile,
                                            const PlanRequest& request,
                                            size_t count);

}  // namespace baton::dist

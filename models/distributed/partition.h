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

// How a model is best trained by the workers that there are, by what its units
// cost there.
namespace baton::dist {

struct PlanRequest {
  int64_t rows = 0;  // of a batch
  // Rows of a micro-batch to choose among, the last one of a batch being what
  // is left; empty: SplitSizesFor(rows).
  std::vector<int64_t> split_sizes = {};
  std::string schedule = "auto";
  double most_held = 0;  // see Workload
  // With "auto", where several workers take part: 1, or 2, with which a worker
  // waits less for the first micro-batch, and each one passes more links.
  int stages_a_worker = 1;
  // That a worker may use; 0: any number. Counts parameters, what belongs to
  // them, and activations that wait for their backward; not what an
  // instruction needs for itself.
  double most_bytes = 0;
  // What there is for each parameter: itself, its gradient, and as many more as
  // the optimizer keeps.
  double parameter_copies = 2;
  bool recompute = false;  // see StageSpec
};

// Plain data.
struct Plan {
  std::vector<std::string> cuts;  // what each stage but the last ends after
  std::vector<int> workers;       // of each stage, as in ClusterProfile
  int64_t split_size = 0;
  std::vector<int64_t> micro_batches;  // rows of each, as split_size gives
  ScheduleChoice schedule;
  // Of a step, without the optimizer's, in seconds; its workers count from 0 as
  // the stages name them first.
  Simulation predicted;
  std::vector<double> bytes;  // that each worker uses at most, as `predicted`
  // A step of the fastest worker alone, at its best; 0: it has not the memory.
  double alone_s = 0;

  double seconds() const { return predicted.makespan; }
};

// For people: "2 stages, cut after layer2.1; 10 micro-batches of 12; ...".
std::string ToString(const Plan& plan);

// The split sizes worth a thought for batches of so many rows, falling: those
// of 1 to 32 micro-batches as equal as can be.
std::vector<int64_t> SplitSizesFor(int64_t rows);
// Of these, what to measure so that Profile::At can tell the others.
std::vector<int64_t> RowsToMeasure(std::vector<int64_t> split_sizes);

// The plan of the shortest simulated step among: the fastest k workers, for
// each k, in the order in which the profile has them; all cuts between units;
// all split sizes; and where the schedule leaves it open, orders of work. Links
// take what was measured, each micro-batch by its size. One worker alone, in
// 1f1b, is among them, and is taken where nothing is faster. Where there are
// too many cuts to simulate (some hundred), those of the best lower bounds are:
// a step takes no less than the busiest worker's work and what must come before
// and after it.
//
// InvalidArgument for requests and profiles that do not fit each other or the
// schedule; ResourceExhausted where no plan keeps within most_bytes, with the
// least that one would need.
absl::StatusOr<Plan> MakePlan(const ClusterProfile& profile,
                              const PlanRequest& request);
// The best `count` of them, the best first, and behind them one worker alone
// where it is not among them and has the memory: what to try where predictions
// lie closer together than they are right. Errors likewise.
absl::StatusOr<std::vector<Plan>> MakePlans(const ClusterProfile& profile,
                                            const PlanRequest& request,
                                            size_t count);

}  // namespace baton::dist

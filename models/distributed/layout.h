// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "models/distributed/micro_batches.h"
#include "models/distributed/profile.h"
#include "models/distributed/simulation.h"
#include "models/distributed/workload.h"

// What stages of a model come to, by a profile of its units: the sums that a
// plan (partition.h) is searched by.
namespace baton::dist {

// What the units before each one, and at last all, cost together at one worker,
// for micro-batches of one size.
struct UnitSums {
  UnitSums(const Profile& profile, int64_t micro_batch);
  double step_s() const;  // of one micro-batch and all units

  std::vector<double> forward{0}, input_grad{0}, weight_grad{0}, held_bytes{0},
      parameter_bytes{0};
  // No sums: of what each unit is given, and behind the last one nothing.
  std::vector<double> input_bytes;
};

// A batch in micro-batches. The profile outlives it.
struct BatchSplit {
  BatchSplit(const ClusterProfile& profile, int64_t rows, int64_t split_size);

  int64_t size;
  std::vector<RowRange> parts;
  std::vector<double> shares;  // of each part: its time, that of `size` being 1
  double all = 0;              // of them
  std::vector<UnitSums> units;  // at each worker
};

// Workers that take part, and which of them, counted from 0, has each stage.
struct StageTeam {
  std::vector<int> workers;  // of the cluster's
  std::vector<int> placed;
};

// The first stages of a team, or all of them. What it points at outlives it.
struct StageLayout {
  const BatchSplit* split = nullptr;
  const StageTeam* team = nullptr;
  std::vector<size_t> ends;  // of each stage: the first unit behind it
  double least_s = 0;        // no step is shorter

  size_t begin(size_t stage) const { return stage == 0 ? 0 : ends[stage - 1]; }
  int worker(size_t stage) const;  // of the cluster's
  const UnitSums& units(size_t stage) const;
};

// Judges layouts. Outlived by the profile. Thread-compatible.
class LayoutCosts {
 public:
  // As in PlanRequest.
  LayoutCosts(const ClusterProfile& profile, double parameter_copies,
              bool recompute);

  // What a step takes at least, by what the worker of the last stage has to do
  // after the forwards before its first stage and, all but the gradients of
  // weights, before the last gradients of inputs there. More units in the last
  // stage do not make it less.
  double LeastSecondsOfLast(const StageLayout& layout) const;
  // Of a whole layout, in seconds.
  Workload WorkOf(const StageLayout& layout) const;

  // Of each worker of the team: with one micro-batch in flight, and in a step
  // of the whole layout.
  std::vector<double> LeastBytes(const StageLayout& layout) const;
  std::vector<double> PeakBytes(const StageLayout& layout,
                                const Simulation& simulation) const;

 private:
  StageCosts CostsOf(const StageLayout& layout, size_t stage) const;
  // Whatever is in flight.
  std::vector<double> FixedBytes(const StageLayout& layout) const;
  // From a micro-batch's forward on.
  double HeldBytes(const StageLayout& layout, size_t stage) const;

  const ClusterProfile& profile_;
  const double parameter_copies_;
  const bool recompute_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "models/distributed/micro_batches.h"
#include "models/distributed/profile.h"
#include "models/distributed/simulation.h"
#include "models/distributed/workload.h"

// The predicted costs of a model's stages, computed from a profile of its
// units. The search for a plan (partition.h) compares layouts by them.
namespace baton::dist {

// Prefix sums of the units' costs at one worker, for micro-batches of one size:
// element i is the cost of all units before unit i, and the last element is the
// cost of all units.
struct UnitSums {
  UnitSums(const Profile& profile, int64_t micro_batch);
  double step_s() const;  // one micro-batch through all units

  std::vector<double> forward{0}, input_grad{0}, weight_grad{0}, held_bytes{0},
      parameter_bytes{0};
  // Not prefix sums: the size of each unit's input; 0 for the place after the
  // last unit's output, which goes nowhere.
  std::vector<double> input_bytes;
};

// A batch that is split into micro-batches.
struct BatchSplit {
  BatchSplit(const ClusterProfile& profile, int64_t rows, int64_t split_size);
  // Into parts of these sizes.
  BatchSplit(const ClusterProfile& profile, const std::vector<int64_t>& sizes);

  int64_t size;  // of the largest part
  std::vector<RowRange> parts;
  std::vector<double> shares;   // the time of each part, relative to that of
                                // `size` rows
  double all = 0;               // the sum of `shares`
  std::vector<UnitSums> units;  // one for each worker of the cluster
};

// The workers that take part, and the place in the team, counted from 0, of
// each stage's worker.
struct StageTeam {
  std::vector<int> workers;  // indices of workers in the ClusterProfile
  std::vector<int> placed;
};

// The first stages of a team's layout, or all of them. What it points at must
// outlive it.
struct StageLayout {
  const BatchSplit* split = nullptr;
  const StageTeam* team = nullptr;
  std::vector<size_t> ends;  // for each stage, the unit that follows its last
                             // one
  double least_s = 0;        // a lower bound for the time of a step

  size_t begin(size_t stage) const { return stage == 0 ? 0 : ends[stage - 1]; }
  int worker(size_t stage) const;  // index in the ClusterProfile
  const UnitSums& units(size_t stage) const;
};

// Predicts the costs of layouts. The profile must outlive it.
// Thread-compatible.
class LayoutCosts {
 public:
  // The parameters are those of PlanRequest.
  LayoutCosts(const ClusterProfile& profile, double parameter_copies,
              bool recompute, double most_bytes);

  // Returns a lower bound for the time of a step, in seconds: what the last
  // stage's worker must compute, the forwards that come before its first stage,
  // and the input gradients that follow its last ones, which only its weight
  // gradients can overlap. Adding units to the last stage never lowers the
  // bound.
  double LeastSecondsOfLast(const StageLayout& layout) const;
  // Returns the workload of a complete layout, in seconds.
  Workload WorkOf(const StageLayout& layout) const;

  // These return the memory of each worker of the team: with one micro-batch in
  // flight, and the peak during a simulated step of the complete layout. Both
  // count the windows of links between processes of one machine.
  std::vector<double> LeastBytes(const StageLayout& layout) const;
  std::vector<double> PeakBytes(const StageLayout& layout,
                                const Simulation& simulation) const;
  // The memory that a worker would need, and its limit.
  struct Need {
    double bytes = 0, limit = 1;
    double share() const { return bytes / limit; }
  };
  // Returns the worker of the team that needs the largest share of its limit,
  // which is most_bytes; if that is 0, kUsableShare of what the worker's GPU
  // has free, in equal parts for all workers of the team on that GPU, and
  // infinity for a CPU and where it is unknown.
  static constexpr double kUsableShare = 0.9;
  Need LargestNeed(const StageTeam& team,
                   const std::vector<double>& bytes) const;
  bool limits() const { return limits_; }  // whether some worker has a limit

 private:
  StageCosts CostsOf(const StageLayout& layout, size_t stage) const;
  double LimitOf(const StageTeam& team, size_t place) const;
  // Returns the bytes that are in use whatever is in flight.
  std::vector<double> FixedBytes(const StageLayout& layout) const;
  // Returns the bytes that a micro-batch holds from its forward on.
  double HeldBytes(const StageLayout& layout, size_t stage) const;
  const WorkerPlace* PlaceOf(const StageLayout& layout, size_t stage) const;
  // Returns whether the link to this stage from the one before has windows.
  bool HasWindow(const StageLayout& layout, size_t stage) const;
  // Adds the windows of all links. `most_open` is, for each stage, the most
  // micro-batches at a time between its forward and its backward.
  void AddWindows(const StageLayout& layout, const std::vector<int>& most_open,
                  std::vector<double>& bytes) const;

  const ClusterProfile& profile_;
  const double parameter_copies_;
  const bool recompute_;
  const double most_bytes_;
  const bool limits_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/workload.h"

namespace baton::dist {

struct TimedInstruction {
  int worker = 0;
  Instruction instruction;
  double begin = 0;
  double end = 0;
};

// The predicted course of a step: each worker executes its instructions one
// after the other, each as soon as its inputs are there. Times are in the unit
// of the costs and count from the beginning of the step.
struct Simulation {
  double makespan = 0;
  std::vector<double> busy;       // of each worker
  std::vector<double> peak_held;  // of each worker, as Workload::most_held
  // Ordered by begin time; at equal times, smaller micro-batches come first. An
  // instruction always follows those that it depends on.
  std::vector<TimedInstruction> order;

  // The share of the step in which one worker, or the mean worker, is idle.
  double bubble(size_t worker) const { return 1 - busy[worker] / makespan; }
  double bubble() const;
  double most_held() const;  // the maximum over all workers
};

// Simulates a schedule whose programs have passed CheckProgram. Returns
// InvalidArgument if its stages are not at the workers that `work` names, if
// the numbers of stages or micro-batches differ, or if workers wait for each
// other.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule,
                                    const Workload& work);

// The measured and the predicted course of a pipeline's steps. Plain data.
struct PipelineTiming {
  Schedule schedule;
  // Measured: the mean worker's idle share of the median step.
  double bubble = 0;
  Simulation predicted;  // from the measured costs
  // Measured: the share of the median step in which the mean worker waits for
  // the gradients of replicas, after its last backward.
  double awaited = 0;
};

// A step under construction: when the instructions given so far begin and end,
// and what the workers hold. The workload must outlive it. Thread-compatible.
class Timeline {
 public:
  explicit Timeline(const Workload& work);

  // Returns when the instruction would begin if it were given to its worker
  // next; nullopt if something that it needs has not been given.
  std::optional<double> BeginOf(const Instruction& step) const;
  // Appends an instruction that can begin.
  void Give(const Instruction& step);

  // Returns the instructions given so far; peak_held counts whole stages here.
  const Simulation& so_far() const { return simulation_; }
  // Returns how many stages' activations a worker holds after the instructions
  // given so far.
  int held(int worker) const { return held_[static_cast<size_t>(worker)]; }

 private:
  size_t IndexOf(const Instruction& step) const;  // an index into ends_
  int WorkerOf(int stage) const;
  // When the neighbor has the result of an instruction that ends at `end`.
  double Deliver(const Instruction& step, double end);

  const Workload& work_;
  std::vector<double> ends_;   // of each F, B and W; negative if it was not
                               // given
  std::vector<double> there_;  // indexed likewise: when the next stage has the
                               // result
  // For the link behind each stage, forward and backward: when it is free
  // again.
  std::vector<std::array<double, 2>> links_free_at_;
  std::vector<double> free_at_;  // when each worker is
  std::vector<int> held_;        // by each worker
  Simulation simulation_;
};

}  // namespace baton::dist

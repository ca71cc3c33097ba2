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

// What a step by a schedule comes to, each worker doing one instruction after
// the other, each as soon as what it needs is there. Times in the unit of the
// costs, from the step's beginning.
struct Simulation {
  double makespan = 0;
  std::vector<double> busy;       // of each worker
  std::vector<double> peak_held;  // of each worker, as Workload::most_held
  // By beginning; at the same time, smaller micro-batches first. What an
  // instruction needs stands before it.
  std::vector<TimedInstruction> order;

  // Share of the step in which a worker, or a mean one, does nothing.
  double bubble(size_t worker) const { return 1 - busy[worker] / makespan; }
  double bubble() const;
  double most_held() const;  // of all workers
};

// The schedule's stages are where the workload says; its numbers of stages and
// micro-batches are the workload's. InvalidArgument for those that are not, and
// for workers that wait for each other. Each program is right for itself
// (CheckProgram).
absl::StatusOr<Simulation> Simulate(const Schedule& schedule,
                                    const Workload& work);

// What the steps of a pipeline come to. Plain data.
struct PipelineTiming {
  Schedule schedule;
  double bubble = 0;     // measured: the share in which a mean worker idles
  Simulation predicted;  // by the costs that were measured
};

// A step that is being made up: when the instructions given so far begin and
// end, and what workers hold. Outlived by the workload. Thread-compatible.
class Timeline {
 public:
  explicit Timeline(const Workload& work);

  // When the instruction would begin, given next to its worker; none: what it
  // needs has not been given.
  std::optional<double> BeginOf(const Instruction& step) const;
  // One that can begin.
  void Give(const Instruction& step);

  // What was given; peak_held counts whole stages here.
  const Simulation& so_far() const { return simulation_; }
  // Stages' activations that a worker holds at the end of what was given.
  int held(int worker) const { return held_[static_cast<size_t>(worker)]; }

 private:
  size_t IndexOf(const Instruction& step) const;  // in ends_
  int WorkerOf(int stage) const;
  // When the neighbour has what an instruction made that ends then.
  double Deliver(const Instruction& step, double end);

  const Workload& work_;
  std::vector<double> ends_;   // of F, B and W each; negative: not given
  std::vector<double> there_;  // likewise, when the next stage has it
  // Of the link behind each stage, there and back: when it is free again.
  std::vector<std::array<double, 2>> links_free_at_;
  std::vector<double> free_at_;  // each worker
  std::vector<int> held_;        // by each worker
  Simulation simulation_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "models/distributed/schedule.h"

namespace baton::dist {

// How long the instructions of a stage take on one micro-batch, in any unit.
struct StageCosts {
  double forward = 4;
  double input_grad = 6;
  double weight_grad = 3;

  // A BW takes what B and W take.
  double of(StageOp op) const;
  static constexpr auto Fields() {
    return std::tuple{&StageCosts::forward, &StageCosts::input_grad,
                      &StageCosts::weight_grad};
  }
};

// Returns the median; for an even number, the mean of the two in the middle.
// `values` must not be empty.
double MedianOf(std::vector<double> values);

// The stages and micro-batches that a schedule is made for. Plain data.
struct Workload {
  std::vector<int> worker_of_stage;  // counted from 0
  int micro_batches = 1;
  std::vector<StageCosts> costs = {};  // of each stage; if empty, the default
                                       // costs
  // The relative cost of each micro-batch, such as its rows divided by the
  // mean. Empty: all are 1.
  std::vector<double> sizes = {};
  // The time from the end of an instruction until another worker has its
  // result.
  double link = 0;
  // Additional time for each place between two stages: how long the link
  // carries the stage's output for a micro-batch of size 1, or the gradient
  // that comes back. A link carries one transfer at a time in each direction.
  // Empty: no time.
  std::vector<double> transfers = {};
  // The part of a BW of each stage, for a micro-batch of size 1, that runs
  // while the gradient of its inputs is already on its way. Empty: none.
  std::vector<double> tails = {};
  double start = 0;  // until the first stage has the batch
  double gap = 0;    // between two instructions of a worker
  // The maximum of activations that a worker may hold, in units of one
  // micro-batch at all stages of the worker; at least 1. Activations stay from
  // a forward until its weight gradients. 0: twice what 1f1b would hold. Only
  // schedules that are ordered by costs use this; the others hold what their
  // name implies.
  double most_held = 0;

  int stages() const { return static_cast<int>(worker_of_stage.size()); }
  int workers() const;
  // Returns the number of stages of each worker.
  std::vector<int> stages_of_worker() const;
  StageCosts costs_of(int stage) const;
  double size_of(int micro_batch) const;
};

// Returns InvalidArgument unless there is at least one stage and one
// micro-batch, every worker has a stage, `costs`, `transfers`, `tails` and
// `sizes` are each empty or have one element per stage, place between stages
// and micro-batch, and no value is negative.
absl::Status CheckWorkload(const Workload& work);

// Collects how long the instructions of each stage took, the copies between
// neighboring stages of different workers, and what came before and between.
// Value type.
class CostMeter {
 public:
  explicit CostMeter(size_t stages = 0)
      : stages_(stages),
        tails_(stages),
        copies_(stages == 0 ? 0 : stages - 1) {}

  // Adds the time of an instruction. Of a BW's time, `tail` came when its
  // result was already on its way.
  void Add(const Instruction& instruction, double size, double time,
           double tail = 0);
  // Adds a copy of one micro-batch, in either direction. Copies that skip
  // stages are ignored.
  void AddCopy(int from_stage, int to_stage, double time);
  void AddStart(double time) { starts_.Add(1, time); }
  void AddGap(double time) { gaps_.Add(1, time); }
  // Returns the mean costs for a micro-batch of size 1; 0 if nothing was added.
  // If a stage had only BW, two thirds of it count as B.
  std::vector<StageCosts> Mean() const;
  // Returns the mean Workload::transfers; empty if no copy was added.
  std::vector<double> Transfers() const;
  // Sets costs, transfers, tails, start and gap of `work` to their means.
  void Describe(Workload& work) const;

 private:
  struct Sum {
    double size = 0, time = 0;
    void Add(double of_size, double took) {
      size += of_size;
      time += took;
    }
    double mean() const { return size > 0 ? time / size : 0; }
  };
  std::vector<std::array<Sum, 4>> stages_;  // by StageOp
  std::vector<Sum> tails_;                  // of each stage
  Sum starts_, gaps_;
  std::vector<Sum> copies_;  // for each stage but the last, the link that
                             // follows it
};

}  // namespace baton::dist

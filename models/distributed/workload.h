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

// What a schedule is to be made for. Plain data.
struct Workload {
  std::vector<int> worker_of_stage;  // counted from 0
  int micro_batches = 1;
  std::vector<StageCosts> costs = {};  // of each stage; empty: all the usual
  // Of each micro-batch, such as its rows over the mean: how its costs differ.
  // Empty: all 1.
  std::vector<double> sizes = {};
  // From the end of an instruction until another worker has what it made.
  double link = 0;
  // What comes on top of it, behind each stage but the last: how long the link
  // between two workers carries the stage's output of a micro-batch of size 1,
  // or the gradient that comes back. A link carries one after the other, each
  // way by itself. Empty: no time.
  std::vector<double> transfers = {};
  // The most that a worker may hold of activations, which stay from a forward
  // until its gradients of weights: in units of one micro-batch at all stages
  // of the worker, at least 1. 0: twice what 1f1b would hold. For schedules
  // that are ordered by costs; the others hold what their name says.
  double most_held = 0;

  int stages() const { return static_cast<int>(worker_of_stage.size()); }
  int workers() const;
  // How many stages each worker has.
  std::vector<int> stages_of_worker() const;
  StageCosts costs_of(int stage) const;
  double size_of(int micro_batch) const;
};

// InvalidArgument unless there is a stage and a micro-batch, every worker has a
// stage, and there are no costs, transfers and sizes or as many as stages,
// places between them and micro-batches, none negative.
absl::Status CheckWorkload(const Workload& work);

// What the instructions of each stage took, and copies between neighbours of
// different workers. Value type.
class CostMeter {
 public:
  explicit CostMeter(size_t stages = 0)
      : stages_(stages), copies_(stages == 0 ? 0 : stages - 1) {}

  void Add(const Instruction& instruction, double size, double time);
  // Of one micro-batch, either way. Copies that skip stages do not count.
  void AddCopy(int from_stage, int to_stage, double time);
  // Mean for a micro-batch of size 1; 0 where nothing was added. Of a BW two
  // thirds count as B's, unless B and W were seen apart.
  std::vector<StageCosts> Mean() const;
  // Workload::transfers likewise; empty where no copy was added.
  std::vector<double> Transfers() const;

 private:
  struct Sum {
    double size = 0, time = 0;
    double mean() const { return size > 0 ? time / size : 0; }
  };
  std::vector<std::array<Sum, 4>> stages_;  // by StageOp
  std::vector<Sum> copies_;                 // behind each stage but the last
};

}  // namespace baton::dist

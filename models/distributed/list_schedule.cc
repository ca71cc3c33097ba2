// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/list_schedule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "core/status.h"
#include "models/distributed/simulation.h"

namespace baton::dist {
namespace {

// The instructions that other workers wait for longest come first.
constexpr std::array<StageOp, 3> kRanks = {
    StageOp::kInputGrad, StageOp::kForward, StageOp::kWeightGrad};

class Lister {
 public:
  Lister(const Workload& work, FirstOf ties)
      : work_(work),
        ties_(ties),
        timeline_(work),
        next_(work.worker_of_stage.size(), {0, 0, 0}),
        stages_of_(static_cast<size_t>(work.workers())) {
    for (int stage = 0; stage < work.stages(); ++stage)
      stages_of_[WorkerOf(stage)].push_back(stage);
  }

  Schedule Run() {
    Schedule schedule;
    schedule.workers.resize(stages_of_.size());
    size_t left =
        kRanks.size() * next_.size() * static_cast<size_t>(work_.micro_batches);
    for (; left > 0; --left) {
      const Instruction step = Choose();
      timeline_.Give(step);
      ++Next(step.op, step.stage);
      schedule.workers[WorkerOf(step.stage)].push_back(step);
    }
    return schedule;
  }

 private:
  size_t WorkerOf(int stage) const {
    return static_cast<size_t>(
        work_.worker_of_stage[static_cast<size_t>(stage)]);
  }
  int& Next(StageOp op, int stage) {  // the next micro-batch
    return next_[static_cast<size_t>(stage)][static_cast<size_t>(op)];
  }

  Instruction Choose() {
    using Key = std::tuple<double, size_t, int, int>;
    std::optional<std::pair<Key, Instruction>> best;
    for (int stage = 0; stage < work_.stages(); ++stage) {
      for (size_t rank = 0; rank < kRanks.size(); ++rank) {
        const StageOp op = kRanks[rank];
        const Instruction step = {op, stage, Next(op, stage)};
        if (step.micro_batch == work_.micro_batches) continue;
        const auto begin = timeline_.BeginOf(step);
        if (!begin || (op == StageOp::kForward && !Fits(stage))) continue;
        const int m = step.micro_batch;
        const Key key = ties_ == FirstOf::kMicroBatches
                            ? Key{*begin, rank, m, -stage}
                            : Key{*begin, rank, -stage, m};
        if (!best || key < best->first) best = {key, step};
      }
    }
    BATON_CHECK(best.has_value());
    return best->second;
  }

  // Whether the worker can do the next forward of `stage` and afterwards finish
  // everything that it has begun, one micro-batch after the other.
  bool Fits(int stage) {
    const size_t worker = WorkerOf(stage);
    const std::vector<int>& stages = stages_of_[worker];
    int first = work_.micro_batches, last = 0;
    for (int one : stages) {
      const int forwards = Next(StageOp::kForward, one) + (one == stage);
      first = std::min(first, Next(StageOp::kWeightGrad, one));
      last = std::max(last, forwards);
    }
    double room = work_.most_held * static_cast<double>(stages.size()) -
                  timeline_.held(static_cast<int>(worker)) - 1;
    for (int m = first; m < last && room >= 0; ++m) {
      int to_come = 0, held = 0;
      for (int one : stages) {
        const int forwards = Next(StageOp::kForward, one) + (one == stage);
        if (m >= forwards) ++to_come;
        if (m < forwards && m >= Next(StageOp::kWeightGrad, one)) ++held;
      }
      if (to_come > room) return false;
      room += held;
    }
    return room >= 0;
  }

  const Workload& work_;
  const FirstOf ties_;
  Timeline timeline_;
  std::vector<std::array<int, 3>> next_;     // of each stage, by StageOp
  std::vector<std::vector<int>> stages_of_;  // of each worker
};

}  // namespace

Schedule ListSchedule(const Workload& work, FirstOf ties) {
  return Lister(work, ties).Run();
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/simulation.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// Returns the error for programs that block each other.
absl::Status WaitForEachOther(const Schedule& schedule,
                              const std::vector<size_t>& next) {
  std::string at;
  for (size_t worker = 0; worker < next.size(); ++worker) {
    const Program& program = schedule.workers[worker];
    if (next[worker] == program.size()) continue;
    absl::StrAppend(&at, at.empty() ? "" : ", ", "worker ", worker, " at ",
                    ToString(program[next[worker]]));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the workers wait for each other: ", at));
}

}  // namespace

double Simulation::bubble() const {
  const double sum = std::accumulate(busy.begin(), busy.end(), 0.0);
  return 1 - sum / (makespan * static_cast<double>(busy.size()));
}

double Simulation::most_held() const {
  return *std::max_element(peak_held.begin(), peak_held.end());
}

Timeline::Timeline(const Workload& work)
    : work_(work),
      ends_(3 * work.worker_of_stage.size() *
                static_cast<size_t>(work.micro_batches),
            -1),
      there_(ends_),
      links_free_at_(work.worker_of_stage.size(), {0, 0}),
      free_at_(static_cast<size_t>(work.workers()), work.start),
      held_(free_at_.size(), 0) {
  simulation_.busy.resize(free_at_.size(), 0);
  simulation_.peak_held.resize(free_at_.size(), 0);
}

size_t Timeline::IndexOf(const Instruction& step) const {
  const int kind = step.op == StageOp::kForward      ? 0
                   : step.op == StageOp::kWeightGrad ? 2
                                                     : 1;
  return static_cast<size_t>((kind * work_.stages() + step.stage) *
                                 work_.micro_batches +
                             step.micro_batch);
}

int Timeline::WorkerOf(int stage) const {
  return work_.worker_of_stage[static_cast<size_t>(stage)];
}

std::optional<double> Timeline::BeginOf(const Instruction& step) const {
  double begin = free_at_[static_cast<size_t>(WorkerOf(step.stage))];
  // Returns false if `needed` has not been given.
  const auto after = [&](const Instruction& needed) {
    const size_t at = IndexOf(needed);
    begin =
        std::max(begin, needed.stage == step.stage ? ends_[at] : there_[at]);
    return ends_[at] >= 0;
  };
  const auto [op, stage, m] = step;
  bool ready = true;
  if (op == StageOp::kForward) {
    if (stage > 0) ready = after({StageOp::kForward, stage - 1, m});
  } else if (op == StageOp::kWeightGrad) {
    ready = after({StageOp::kInputGrad, stage, m});
  } else {
    ready = after({StageOp::kForward, stage, m});
    if (stage + 1 < work_.stages())
      ready = after({StageOp::kInputGrad, stage + 1, m}) && ready;
  }
  return ready ? std::optional(begin) : std::nullopt;
}

double Timeline::Deliver(const Instruction& step, double end) {
  const bool forward = step.op == StageOp::kForward;
  const int to = forward ? step.stage + 1 : step.stage - 1;
  if (step.op == StageOp::kWeightGrad || to < 0 || to == work_.stages() ||
      WorkerOf(to) == WorkerOf(step.stage))
    return end;
  const auto link = static_cast<size_t>(std::min(to, step.stage));
  if (step.op == StageOp::kBackward && !work_.tails.empty())
    end -= work_.size_of(step.micro_batch) *
           work_.tails[static_cast<size_t>(step.stage)];
  double& free_at = links_free_at_[link][forward ? 0 : 1];
  free_at = std::max(free_at, end);
  if (!work_.transfers.empty())
    free_at += work_.size_of(step.micro_batch) * work_.transfers[link];
  return free_at + work_.link;
}

void Timeline::Give(const Instruction& step) {
  const int worker = WorkerOf(step.stage);
  const auto at = static_cast<size_t>(worker);
  const double begin = *BeginOf(step);
  const double takes =
      work_.size_of(step.micro_batch) * work_.costs_of(step.stage).of(step.op);
  const double end = begin + takes;
  ends_[IndexOf(step)] = end;
  there_[IndexOf(step)] = Deliver(step, end);
  free_at_[at] = end + work_.gap;
  if (step.op == StageOp::kForward) ++held_[at];
  if (step.op == StageOp::kWeightGrad || step.op == StageOp::kBackward)
    --held_[at];
  simulation_.busy[at] += takes;
  simulation_.makespan = std::max(simulation_.makespan, end);
  simulation_.peak_held[at] =
      std::max(simulation_.peak_held[at], static_cast<double>(held_[at]));
  simulation_.order.push_back({worker, step, begin, end});
}

absl::StatusOr<Simulation> Simulate(const Schedule& schedule,
                                    const Workload& work) {
  RETURN_IF_ERROR(CheckWorkload(work));
  if (schedule.worker_of_stage() != work.worker_of_stage ||
      schedule.micro_batches() != work.micro_batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", schedule.name, " is for ", schedule.stages(),
        " stages and ", schedule.micro_batches(), " micro-batches, not for ",
        work.stages(), " and ", work.micro_batches,
        ", or places stages at other workers"));
  }
  Timeline timeline(work);
  std::vector<size_t> next(schedule.workers.size(), 0);
  size_t left = 0;
  for (const Program& program : schedule.workers) left += program.size();
  for (; left > 0; --left) {
    using Key = std::tuple<double, int, size_t>;  // begin, micro-batch, worker
    std::optional<Key> first;
    for (size_t worker = 0; worker < next.size(); ++worker) {
      const Program& program = schedule.workers[worker];
      if (next[worker] == program.size()) continue;
      const auto begin = timeline.BeginOf(program[next[worker]]);
      if (!begin) continue;
      const Key key{*begin, program[next[worker]].micro_batch, worker};
      if (!first || key < *first) first = key;
    }
    if (!first) return WaitForEachOther(schedule, next);
    const size_t worker = std::get<size_t>(*first);
    timeline.Give(schedule.workers[worker][next[worker]++]);
  }
  Simulation simulation = timeline.so_far();
  const std::vector<int> stages = work.stages_of_worker();
  for (size_t worker = 0; worker < stages.size(); ++worker)
    simulation.peak_held[worker] /= stages[worker];
  return simulation;
}

}  // namespace baton::dist

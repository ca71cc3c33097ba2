// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedule.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/simulation.h"

namespace baton::dist {
namespace {

// The progress of a program at one stage, in numbers of micro-batches.
struct Done {
  int forwards = 0;
  int input_grads = 0;
  int weight_grads = 0;

  // Returns false if the instruction is not the next of its kind.
  bool Take(const Instruction& step) {
    const int m = step.micro_batch;
    switch (step.op) {
      case StageOp::kForward:
        return m == forwards++;
      case StageOp::kInputGrad:
        return m == input_grads++ && m < forwards;
      case StageOp::kWeightGrad:
        return m == weight_grads++ && m < input_grads;
      case StageOp::kBackward:
        return m == input_grads++ && m == weight_grads++ && m < forwards;
    }
    return false;
  }
  bool complete(int micro_batches) const {
    return forwards == micro_batches && weight_grads == input_grads &&
           (input_grads == 0 || input_grads == micro_batches);
  }
};

template <typename Visit>
void ForEach(const Schedule& schedule, const Visit& visit) {
  for (size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (const Instruction& step : schedule.workers[worker])
      visit(static_cast<int>(worker), step);
  }
}

}  // namespace

const char* NameOf(StageOp op) {
  switch (op) {
    case StageOp::kForward:
      return "F";
    case StageOp::kInputGrad:
      return "B";
    case StageOp::kWeightGrad:
      return "W";
    case StageOp::kBackward:
      return "BW";
  }
  return "?";
}

int Schedule::stages() const {
  int last = -1;
  ForEach(*this, [&](int, const Instruction& step) {
    last = std::max(last, step.stage);
  });
  return last + 1;
}

int Schedule::micro_batches() const {
  int last = -1;
  ForEach(*this, [&](int, const Instruction& step) {
    last = std::max(last, step.micro_batch);
  });
  return last + 1;
}

std::vector<int> Schedule::worker_of_stage() const {
  std::vector<int> workers(static_cast<size_t>(stages()), -1);
  ForEach(*this, [&](int worker, const Instruction& step) {
    workers[static_cast<size_t>(step.stage)] = worker;
  });
  return workers;
}

absl::Status CheckProgram(const Program& program,
                          const std::vector<int>& stages, int micro_batches) {
  std::map<int, Done> done;
  for (int stage : stages) done[stage];
  for (const Instruction& step : program) {
    const auto at = done.find(step.stage);
    if (at == done.end() || !at->second.Take(step)) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(step), " is out of place"));
    }
  }
  for (const auto& [stage, of_stage] : done) {
    if (!of_stage.complete(micro_batches)) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, " is not done with all of ",
                       micro_batches, " micro-batches: ", of_stage.forwards,
                       " forwards, ", of_stage.input_grads, " backwards and ",
                       of_stage.weight_grads, " gradients of weights"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Schedule& schedule) {
  size_t steps = 0, backwards = 0;
  int least = 0;
  ForEach(schedule, [&](int, const Instruction& step) {
    ++steps;
    least = std::min({least, step.stage, step.micro_batch});
    if (step.op != StageOp::kForward && step.op != StageOp::kWeightGrad)
      ++backwards;
  });
  const int stages = schedule.stages(),
            micro_batches = schedule.micro_batches();
  const size_t each = static_cast<size_t>(std::max(stages, micro_batches));
  if (steps == 0 || least < 0 || each > steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule of ", steps, " instructions for ", stages,
                     " stages and ", micro_batches, " micro-batches"));
  }
  std::vector<std::vector<int>> stages_of(schedule.workers.size());
  const std::vector<int> worker_of = schedule.worker_of_stage();
  for (int stage = 0; stage < stages; ++stage) {
    const int worker = worker_of[static_cast<size_t>(stage)];
    if (worker < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("no worker has stage ", stage));
    }
    stages_of[static_cast<size_t>(worker)].push_back(stage);
  }
  for (size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    if (stages_of[worker].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", worker, " has no stage of its own"));
    }
    RETURN_IF_ERROR(Annotate(CheckProgram(schedule.workers[worker],
                                          stages_of[worker], micro_batches),
                             absl::StrCat("worker ", worker)));
  }
  const size_t all =
      static_cast<size_t>(stages) * static_cast<size_t>(micro_batches);
  if (backwards != 0 && backwards != all) {
    return absl::InvalidArgumentError("some stages do no backwards");
  }
  Workload work;
  work.worker_of_stage = worker_of;
  work.micro_batches = micro_batches;
  return Simulate(schedule, work).status();
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "models/distributed/list_schedule.h"
#include "models/distributed/simulation.h"

namespace baton::dist {
namespace {

using Result = absl::StatusOr<Schedule>;

Workload EvenWorkload(std::vector<int> worker_of_stage, int micro_batches) {
  Workload work;
  work.costs.assign(worker_of_stage.size(), StageCosts{1, 1, 1});
  work.worker_of_stage = std::move(worker_of_stage);
  work.micro_batches = micro_batches;
  return work;
}

std::vector<int> DealtOut(int stages, int workers) {
  std::vector<int> placed;
  for (int stage = 0; stage < stages; ++stage)
    placed.push_back(stage % workers);
  return placed;
}

// Returns the placement 0 1 2 2 1 0.
std::vector<int> ThereAndBack(int stages) {
  std::vector<int> placed;
  for (int stage = 0; stage < stages; ++stage)
    placed.push_back(std::min(stage, stages - 1 - stage));
  return placed;
}

// Merges one program per stage into programs of the workers that have the
// stages: each worker always executes the instruction that can begin first.
template <typename ProgramOf>
Result FromStages(const Workload& work, const ProgramOf& program_of) {
  Schedule spread;
  for (int stage = 0; stage < work.stages(); ++stage)
    spread.workers.push_back(program_of(stage));
  const std::vector<int> apart = DealtOut(work.stages(), work.stages());
  if (work.worker_of_stage == apart) return spread;
  ASSIGN_OR_RETURN(const Simulation simulation,
                   Simulate(spread, EvenWorkload(apart, work.micro_batches)));
  Schedule schedule;
  schedule.workers.resize(static_cast<size_t>(work.workers()));
  for (const TimedInstruction& timed : simulation.order) {
    const auto stage = static_cast<size_t>(timed.instruction.stage);
    schedule.workers[static_cast<size_t>(work.worker_of_stage[stage])]
        .push_back(timed.instruction);
  }
  return schedule;
}

Result Gpipe(const Workload& work) {
  return FromStages(work, [&](int stage) {
    Program program;
    for (StageOp op : {StageOp::kForward, StageOp::kBackward}) {
      for (int m = 0; m < work.micro_batches; ++m)
        program.push_back({op, stage, m});
    }
    return program;
  });
}

// The first `ahead` forwards, then forwards and backwards alternate.
template <typename Forward, typename Backward>
Program OneByOne(int count, int ahead, const Forward& forward,
                 const Backward& backward) {
  Program program;
  int forwards = 0;
  while (forwards < std::min(ahead, count)) forward(program, forwards++);
  for (int backwards = 0; backwards < count; ++backwards) {
    if (forwards < count) forward(program, forwards++);
    backward(program, backwards);
  }
  return program;
}

Result OneForwardOneBackward(const Workload& work) {
  return FromStages(work, [&](int stage) {
    return OneByOne(
        work.micro_batches, work.stages() - 1 - stage,
        [&](Program& program, int m) {
          program.push_back({StageOp::kForward, stage, m});
        },
        [&](Program& program, int m) {
          program.push_back({StageOp::kBackward, stage, m});
        });
  });
}

// One-forward-one-backward in which stage s postpones the weight gradients of s
// micro-batches: it holds as many as the first stage, and its backwards, which
// earlier stages wait for, come sooner by that time.
Result ZbH1(const Workload& work) {
  return FromStages(work, [&](int stage) {
    int weights = 0;
    Program program = OneByOne(
        work.micro_batches, work.stages() - 1 - stage,
        [&](Program& steps, int m) {
          steps.push_back({StageOp::kForward, stage, m});
        },
        [&](Program& steps, int m) {
          steps.push_back({StageOp::kInputGrad, stage, m});
          if (m >= stage)
            steps.push_back({StageOp::kWeightGrad, stage, weights++});
        });
    while (weights < work.micro_batches)
      program.push_back({StageOp::kWeightGrad, stage, weights++});
    return program;
  });
}

// Rounds of p micro-batches: each round passes the worker's first stage p
// times, then its second, and so on; backwards in the reverse order.
Result Interleaved(const Workload& work) {
  const int workers = work.workers(), stages = work.stages();
  if (work.worker_of_stage != DealtOut(stages, workers) ||
      stages % workers != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "interleaved-1f1b needs as many stages at each worker, "
        "dealt out in turn; ",
        stages, " stages are at ", absl::StrJoin(work.worker_of_stage, ",")));
  }
  if (stages == workers) return OneForwardOneBackward(work);
  const int each = stages / workers;
  // If the last round is incomplete, its missing micro-batches are omitted.
  const int rounds = (work.micro_batches + workers - 1) / workers;
  Schedule schedule;
  for (int worker = 0; worker < workers; ++worker) {
    const auto add = [&](Program& program, StageOp op, int k) {
      const int in_round = k % stages, turn = in_round / workers;
      const int m = k / stages * workers + in_round % workers;
      const int which = op == StageOp::kForward ? turn : each - 1 - turn;
      if (m < work.micro_batches)
        program.push_back({op, which * workers + worker, m});
    };
    schedule.workers.push_back(OneByOne(
        rounds * stages, 2 * (workers - 1 - worker) + (each - 1) * workers,
        [&](Program& program, int k) { add(program, StageOp::kForward, k); },
        [&](Program& program, int k) { add(program, StageOp::kBackward, k); }));
  }
  return schedule;
}

// Keeps the schedule with the shortest simulation; among equals, the one that
// holds the least.
class Best {
 public:
  explicit Best(const Workload& work) : work_(work) {}

  absl::Status Try(Schedule schedule) {
    ASSIGN_OR_RETURN(const Simulation simulation, Simulate(schedule, work_));
    const std::pair<double, double> key = {simulation.makespan,
                                           simulation.most_held()};
    if (key.second > work_.most_held || (!best_.workers.empty() && key >= key_))
      return absl::OkStatus();
    key_ = key;
    best_ = std::move(schedule);
    return absl::OkStatus();
  }
  absl::Status TryLists() {
    for (FirstOf ties : {FirstOf::kMicroBatches, FirstOf::kLaterStages})
      RETURN_IF_ERROR(Try(ListSchedule(work_, ties)));
    return absl::OkStatus();
  }
  Schedule Take() { return std::move(best_); }

 private:
  const Workload& work_;
  std::pair<double, double> key_;
  Schedule best_;
};

Result ZbV(const Workload& work) {
  const int stages = work.stages(), workers = work.workers();
  if (stages != 2 * workers || work.worker_of_stage != ThereAndBack(stages)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "zb-v needs two stages at each worker, there and back again as in "
        "0,1,1,0; ",
        stages, " stages are at ", absl::StrJoin(work.worker_of_stage, ",")));
  }
  Workload even = EvenWorkload(work.worker_of_stage, work.micro_batches);
  even.most_held = workers;
  Best best(even);
  RETURN_IF_ERROR(best.TryLists());
  return best.Take();
}

// Splits each BW into B and a W right after it: no worker waits longer, and
// some wait less.
Schedule Apart(const Schedule& schedule) {
  Schedule apart;
  for (const Program& program : schedule.workers) {
    Program& steps = apart.workers.emplace_back();
    for (const auto& [op, stage, m] : program) {
      if (op != StageOp::kBackward) {
        steps.push_back({op, stage, m});
        continue;
      }
      steps.push_back({StageOp::kInputGrad, stage, m});
      steps.push_back({StageOp::kWeightGrad, stage, m});
    }
  }
  return apart;
}

Result Auto(const Workload& work);

struct Row {
  const char* name;
  Result (*make)(const Workload&);
  bool there_and_back = false;  // how it places the stages
};
constexpr Row kRows[] = {
    {"gpipe", Gpipe},
    {"1f1b", OneForwardOneBackward},
    {"interleaved-1f1b", Interleaved},
    {"zb-h1", ZbH1},
    {"zb-v", ZbV, true},
    {"auto", Auto},
};

Result Auto(const Workload& work) {
  Workload bounded = work;
  if (bounded.most_held == 0) bounded.most_held = 2.0 * work.workers();
  if (bounded.most_held < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker cannot hold less than one micro-batch, as ",
                     bounded.most_held));
  }
  Best best(bounded);
  RETURN_IF_ERROR(best.TryLists());
  for (const Row& row : kRows) {
    if (row.make == Auto) continue;
    // Schedules that need other placements do not count.
    Result schedule = row.make(work);
    if (schedule.ok()) RETURN_IF_ERROR(best.Try(Apart(*schedule)));
  }
  return best.Take();
}

absl::StatusOr<Row> RowOf(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no schedule '", name, "', only ",
                   absl::StrJoin(ScheduleNames(), ", ")));
}

// Returns the given schedule with its workers numbered as in the workload.
Result Renumbered(const Schedule& given, const Workload& work) {
  const auto wrong = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", given.name, " is for ", given.workers.size(), " workers, ",
        given.stages(), " stages and ", given.micro_batches(),
        " micro-batches, not for ", work.workers(), ", ", work.stages(),
        " and ", work.micro_batches, what));
  };
  if (given.workers.size() != static_cast<size_t>(work.workers()) ||
      given.stages() != work.stages() ||
      given.micro_batches() != work.micro_batches) {
    return wrong("");
  }
  Schedule schedule = {given.name, {}};
  schedule.workers.resize(given.workers.size());
  for (const Program& program : given.workers) {
    const auto stage = static_cast<size_t>(program.front().stage);
    schedule.workers[static_cast<size_t>(work.worker_of_stage[stage])] =
        program;
  }
  if (schedule.worker_of_stage() != work.worker_of_stage)
    return wrong(", and puts other stages together");
  return schedule;
}

}  // namespace

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::vector<int>> PlaceStages(const std::string& name,
                                             int stages, int workers) {
  ASSIGN_OR_RETURN(const Row row, RowOf(name));
  if (stages < 1 || workers < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot place ", stages, " stages at ", workers, " workers"));
  }
  if (!row.there_and_back) return DealtOut(stages, std::min(stages, workers));
  if (stages % 2 != 0 || workers < stages / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " needs two stages a worker, not ", stages,
                     " stages at ", workers, " workers"));
  }
  return ThereAndBack(stages);
}

absl::StatusOr<Schedule> MakeSchedule(const std::string& name,
                                      const Workload& work) {
  ASSIGN_OR_RETURN(const Row row, RowOf(name));
  RETURN_IF_ERROR(CheckWorkload(work));
  ASSIGN_OR_RETURN(Schedule schedule, row.make(work));
  schedule.name = name;
  return schedule;
}

absl::StatusOr<Schedule> MakeForwards(const Workload& work) {
  RETURN_IF_ERROR(CheckWorkload(work));
  ASSIGN_OR_RETURN(Schedule schedule, FromStages(work, [&](int stage) {
                     Program program;
                     for (int m = 0; m < work.micro_batches; ++m)
                       program.push_back({StageOp::kForward, stage, m});
                     return program;
                   }));
  schedule.name = "forwards";
  return schedule;
}

absl::StatusOr<std::vector<int>> PlaceStages(const ScheduleChoice& choice,
                                             int stages, int workers) {
  if (!choice.given) return PlaceStages(choice.name, stages, workers);
  const Schedule& given = *choice.given;
  if (given.stages() != stages ||
      given.workers.size() > static_cast<size_t>(workers)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", given.name, " is for ", given.stages(), " stages at ",
        given.workers.size(), " workers, not for ", stages, " at ", workers));
  }
  return given.worker_of_stage();
}

absl::StatusOr<Schedule> MakeSchedule(const ScheduleChoice& choice,
                                      Workload work) {
  work.most_held = choice.most_held;
  if (!choice.given) return MakeSchedule(choice.name, work);
  RETURN_IF_ERROR(CheckWorkload(work));
  RETURN_IF_ERROR(CheckSchedule(*choice.given));
  return Renumbered(*choice.given, work);
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton::dist {
namespace {

std::vector<Instruction> FillDrain(int micro_batches) {
  std::vector<Instruction> program;
  for (StageOp op : {StageOp::kForward, StageOp::kBackward}) {
    for (int i = 0; i < micro_batches; ++i) program.push_back({op, i});
  }
  return program;
}

// Forwards keep the later stages busy until the first gradient is back; from
// then on each backward makes room for one forward.
std::vector<Instruction> OneForwardOneBackward(int most_held,
                                               int micro_batches) {
  std::vector<Instruction> program;
  int forward = 0;
  while (forward < most_held - 1) {
    program.push_back({StageOp::kForward, forward++});
  }
  for (int backward = 0; backward < micro_batches; ++backward) {
    if (forward < micro_batches) {
      program.push_back({StageOp::kForward, forward++});
    }
    program.push_back({StageOp::kBackward, backward});
  }
  return program;
}

// Twice the forwards ahead, and as many gradients of weights behind, as there
// are stages on that side: slack, since the three kinds of work never take
// quite the same time.
std::vector<Instruction> ZeroBubble(int stage, int most_held,
                                    int micro_batches) {
  std::vector<Instruction> program;
  int weights = 0;
  for (const Instruction& step :
       OneForwardOneBackward(most_held, micro_batches)) {
    program.push_back(step);
    if (step.op == StageOp::kBackward && step.micro_batch >= 2 * stage)
      program.push_back({StageOp::kWeights, weights++});
  }
  while (weights < micro_batches)
    program.push_back({StageOp::kWeights, weights++});
  return program;
}

std::vector<Instruction> ProgramOf(Schedule schedule, int stage, int stages,
                                   int micro_batches) {
  const int most_held = MostHeld(schedule, stage, stages, micro_batches);
  switch (schedule) {
    case Schedule::kFillDrain:
      return FillDrain(micro_batches);
    case Schedule::kOneForwardOneBackward:
      return OneForwardOneBackward(most_held, micro_batches);
    case Schedule::kZeroBubble:
      return ZeroBubble(stage, most_held, micro_batches);
  }
  Fail("schedule",
       absl::StrCat("there is no schedule ", static_cast<int>(schedule)));
}

const char* NameOf(StageOp op) {
  return op == StageOp::kForward ? "F" : op == StageOp::kBackward ? "B" : "W";
}

}  // namespace

int MostHeld(Schedule schedule, int stage, int stages, int micro_batches) {
  const int after = stages - 1 - stage;  // stages
  switch (schedule) {
    case Schedule::kFillDrain:
      return micro_batches;
    case Schedule::kOneForwardOneBackward:
      return std::min(after + 1, micro_batches);
    case Schedule::kZeroBubble:
      return std::min(2 * after + 1, micro_batches);
  }
  return micro_batches;
}

const char* NameOf(Schedule schedule) {
  switch (schedule) {
    case Schedule::kFillDrain:
      return "fill_drain";
    case Schedule::kOneForwardOneBackward:
      return "1f1b";
    case Schedule::kZeroBubble:
      return "zero_bubble";
  }
  return "unknown";
}

std::vector<std::vector<Instruction>> TrainPrograms(Schedule schedule,
                                                    int stages,
                                                    int micro_batches) {
  Require(stages > 0 && micro_batches > 0, "schedule",
          "expected at least one stage and micro-batch, got ", stages, " and ",
          micro_batches);
  std::vector<std::vector<Instruction>> programs;
  for (int stage = 0; stage < stages; ++stage) {
    programs.push_back(ProgramOf(schedule, stage, stages, micro_batches));
  }
  return programs;
}

std::vector<std::vector<Instruction>> EvalPrograms(int stages,
                                                   int micro_batches) {
  Require(stages > 0 && micro_batches > 0, "schedule",
          "expected at least one stage and micro-batch, got ", stages, " and ",
          micro_batches);
  std::vector<Instruction> program;
  for (int i = 0; i < micro_batches; ++i) {
    program.push_back({StageOp::kForward, i});
  }
  return {static_cast<size_t>(stages), program};
}

std::vector<IssuedInstruction> MergePrograms(
    const std::vector<std::vector<Instruction>>& programs) {
  const size_t stages = programs.size();
  std::vector<size_t> next(stages, 0);
  std::vector<int> forwards(stages, 0), backwards(stages, 0);  // given so far
  const auto ready = [&](size_t stage, const Instruction& step) {
    if (step.op == StageOp::kWeights)
      return backwards[stage] > step.micro_batch;
    if (step.op == StageOp::kForward)
      return stage == 0 || forwards[stage - 1] > step.micro_batch;
    return forwards[stage] > step.micro_batch &&
           (stage + 1 == stages || backwards[stage + 1] > step.micro_batch);
  };
  size_t total = 0;
  for (const auto& program : programs) total += program.size();
  std::vector<IssuedInstruction> merged;
  while (merged.size() < total) {
    const size_t before = merged.size();
    for (size_t stage = 0; stage < stages; ++stage) {
      if (next[stage] == programs[stage].size()) continue;
      const Instruction& step = programs[stage][next[stage]];
      if (!ready(stage, step)) continue;
      if (step.op == StageOp::kForward) ++forwards[stage];
      if (step.op == StageOp::kBackward) ++backwards[stage];
      ++next[stage];
      merged.push_back({static_cast<int>(stage), step});
    }
    Require(merged.size() > before, "schedule",
            "the programs wait for each other");
  }
  return merged;
}

std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size) {
  Require(rows > 0 && split_size > 0, "split",
          "expected at least one row and a split size of at least 1, got ",
          rows, " rows and split size ", split_size);
  std::vector<RowRange> parts;
  for (int64_t begin = 0; begin < rows; begin += split_size) {
    parts.push_back({begin, std::min(rows, begin + split_size)});
  }
  return parts;
}

std::vector<RowRange> SplitRows(int64_t rows,
                                const std::vector<int64_t>& sizes) {
  std::vector<RowRange> parts;
  int64_t end = 0;
  for (int64_t size : sizes) {
    Require(size > 0 && size <= rows - end, "split", "micro-batches of ",
            absl::StrJoin(sizes, "+"), " rows do not add up to ", rows);
    parts.push_back({end, end + size});
    end += size;
  }
  Require(end == rows, "split", "micro-batches of ", absl::StrJoin(sizes, "+"),
          " rows do not add up to ", rows);
  return parts;
}

absl::Status CheckProgram(const std::vector<Instruction>& program,
                          int micro_batches) {
  int forward = 0;
  int backward = 0;
  int weights = 0;
  for (const Instruction& step : program) {
    int& next = step.op == StageOp::kForward    ? forward
                : step.op == StageOp::kBackward ? backward
                                                : weights;
    if (step.micro_batch != next++ || backward > forward ||
        weights > backward) {
      return absl::InvalidArgumentError(
          absl::StrCat("out of order: ", ToString(program)));
    }
  }
  if (forward != micro_batches || (backward != 0 && backward != forward) ||
      (weights != 0 && weights != backward)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", micro_batches, " micro-batches, got ", ToString(program)));
  }
  return absl::OkStatus();
}

std::string ToString(const std::vector<Instruction>& program) {
  std::string text;
  for (const Instruction& step : program) {
    absl::StrAppend(&text, text.empty() ? "" : " ", NameOf(step.op),
                    step.micro_batch);
  }
  return text;
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tests/support/named.h"

namespace baton::dist {
namespace {

using Programs = std::vector<std::vector<Instruction>>;

// Runs programs as the stages would, a forward taking 1 and a backward 2 units
// of time, or 1 and weights' gradients 1 where they are apart, each as soon as
// what it needs is there. Returns the time of the whole step, or -1 when some
// stage waits for ever.
int Makespan(const Programs& programs) {
  const int stages = static_cast<int>(programs.size());
  std::map<std::pair<int, int>, int> forward_end, backward_end;
  std::vector<size_t> next(programs.size(), 0);
  std::vector<int> clock(programs.size(), 0);
  const bool apart = std::any_of(
      programs[0].begin(), programs[0].end(),
      [](const auto& step) { return step.op == StageOp::kWeights; });
  bool progress = true;
  while (progress) {
    progress = false;
    for (int s = 0; s < stages; ++s) {
      size_t at = static_cast<size_t>(s);
      while (next[at] < programs[at].size()) {
        const Instruction& step = programs[at][next[at]];
        if (step.op == StageOp::kWeights) {
          if (backward_end.count({s, step.micro_batch}) == 0) return -1;
          ++clock[at];
          ++next[at];
          progress = true;
          continue;
        }
        bool forward = step.op == StageOp::kForward;
        int needed = forward ? s - 1 : s + 1;
        auto& done = forward ? forward_end : backward_end;
        int start = clock[at];
        if (needed >= 0 && needed < stages) {
          auto found = done.find({needed, step.micro_batch});
          if (found == done.end()) break;
          start = std::max(start, found->second);
        }
        clock[at] = start + (forward || apart ? 1 : 2);
        done[{s, step.micro_batch}] = clock[at];
        ++next[at];
        progress = true;
      }
    }
  }
  for (size_t s = 0; s < programs.size(); ++s) {
    if (next[s] != programs[s].size()) return -1;
  }
  return *std::max_element(clock.begin(), clock.end());
}

int PeakHeld(const std::vector<Instruction>& program) {
  int held = 0, peak = 0;
  for (const Instruction& step : program) {
    if (step.op == StageOp::kForward) ++held;
    if (step.op == StageOp::kBackward) --held;
    peak = std::max(peak, held);
  }
  return peak;
}

TEST(Schedule, FillDrainRunsAllForwardsThenAllBackwards) {
  Programs programs = TrainPrograms(Schedule::kFillDrain, 2, 3);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(ToString(programs[0]), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(ToString(programs[1]), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedule, OneForwardOneBackwardAlternatesAfterItsWarmUp) {
  Programs programs = TrainPrograms(Schedule::kOneForwardOneBackward, 3, 4);
  EXPECT_EQ(ToString(programs[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(ToString(programs[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(ToString(programs[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, ZeroBubbleLeavesWeightsForWhenOthersDrain) {
  Programs programs = TrainPrograms(Schedule::kZeroBubble, 2, 4);
  EXPECT_EQ(ToString(programs[0]), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(ToString(programs[1]), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST(Schedule, ZeroBubbleIdlesOnlyWhileThePipelineFills) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int parts = 1; parts <= 12; ++parts) {
      Programs programs = TrainPrograms(Schedule::kZeroBubble, stages, parts);
      for (const auto& program : programs)
        EXPECT_TRUE(CheckProgram(program, parts).ok()) << ToString(program);
      const int time = Makespan(programs);
      EXPECT_GT(time, 0);
      EXPECT_LE(time, 3 * (parts + stages - 1));
      if (parts >= 2 * stages) {
        EXPECT_EQ(time, 3 * parts + stages - 1)
            << stages << " stages, " << parts << " micro-batches";
      }
    }
  }
}

TEST(Schedule, ZeroBubbleHoldsTwiceTheStagesThatFollow) {
  Programs programs = TrainPrograms(Schedule::kZeroBubble, 4, 12);
  for (int s = 0; s < 4; ++s)
    EXPECT_EQ(PeakHeld(programs[static_cast<size_t>(s)]), 2 * (3 - s) + 1);
}

TEST(Schedule, EveryProgramHoldsTheMostThatItsScheduleSays) {
  for (Schedule schedule :
       {Schedule::kFillDrain, Schedule::kOneForwardOneBackward,
        Schedule::kZeroBubble}) {
    for (int parts : {1, 3, 12}) {
      Programs programs = TrainPrograms(schedule, 4, parts);
      for (int s = 0; s < 4; ++s) {
        EXPECT_EQ(PeakHeld(programs[static_cast<size_t>(s)]),
                  MostHeld(schedule, s, 4, parts))
            << NameOf(schedule) << " stage " << s << " of " << parts;
      }
    }
  }
}

TEST(Schedule, EvalRunsForwardsOnly) {
  Programs programs = EvalPrograms(2, 3);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(ToString(programs[1]), "F0 F1 F2");
}

using NamedSchedule = testing::Named<Schedule>;
class EverySchedule : public ::testing::TestWithParam<NamedSchedule> {};

TEST_P(EverySchedule, CompletesInTheTimeOfTheKnownBubble) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int parts = 1; parts <= 9; ++parts) {
      Programs programs = TrainPrograms(GetParam().value, stages, parts);
      for (const auto& program : programs) {
        EXPECT_TRUE(CheckProgram(program, parts).ok()) << ToString(program);
      }
      EXPECT_EQ(Makespan(programs), 3 * (parts + stages - 1))
          << stages << " stages, " << parts << " micro-batches";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EverySchedule,
    ::testing::Values(NamedSchedule{"FillDrain", Schedule::kFillDrain},
                      NamedSchedule{"OneForwardOneBackward",
                                    Schedule::kOneForwardOneBackward}),
    ::testing::PrintToStringParamName());

TEST(Schedule, OneForwardOneBackwardHoldsOnlyAsManyAsStagesFollow) {
  Programs programs = TrainPrograms(Schedule::kOneForwardOneBackward, 4, 10);
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(PeakHeld(programs[static_cast<size_t>(s)]), 4 - s);
  }
  for (const auto& program : TrainPrograms(Schedule::kFillDrain, 4, 10)) {
    EXPECT_EQ(PeakHeld(program), 10);
  }
}

TEST(Schedule, RefusesNoStagesAndNoMicroBatches) {
  EXPECT_THROW(TrainPrograms(Schedule::kFillDrain, 0, 1), Error);
  EXPECT_THROW(TrainPrograms(Schedule::kFillDrain, 1, 0), Error);
  EXPECT_THROW(EvalPrograms(1, -1), Error);
}

TEST(SplitRows, LeavesARaggedLastPart) {
  EXPECT_EQ(SplitRows(10, 4), (std::vector<RowRange>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(SplitRows(8, 4), (std::vector<RowRange>{{0, 4}, {4, 8}}));
  EXPECT_EQ(SplitRows(3, 100), (std::vector<RowRange>{{0, 3}}));
}

TEST(SplitRows, TakesSizesThatAddUp) {
  const std::vector<int64_t> sizes = {1, 4, 2};
  EXPECT_EQ(SplitRows(7, sizes),
            (std::vector<RowRange>{{0, 1}, {1, 5}, {5, 7}}));
  EXPECT_THROW(SplitRows(8, sizes), Error);
  EXPECT_THROW(SplitRows(6, sizes), Error);
  EXPECT_THROW(SplitRows(6, std::vector<int64_t>{0, 6}), Error);
  EXPECT_THROW(SplitRows(6, std::vector<int64_t>{-1, 7}), Error);
}

TEST(SplitRows, RefusesEmptyBatchesAndSplits) {
  EXPECT_THROW(SplitRows(0, 4), Error);
  EXPECT_THROW(SplitRows(4, 0), Error);
}

TEST(CheckProgram, RefusesWhatCannotRun) {
  using enum StageOp;
  auto refused = [](std::vector<Instruction> program, int parts) {
    return absl::IsInvalidArgument(CheckProgram(program, parts));
  };
  EXPECT_TRUE(refused({{kBackward, 0}, {kForward, 0}}, 1));
  EXPECT_TRUE(refused({{kForward, 1}, {kForward, 0}}, 2));
  EXPECT_TRUE(refused({{kForward, 0}, {kForward, 0}}, 2));
  EXPECT_TRUE(refused({{kForward, 0}, {kForward, 1}, {kBackward, 0}}, 2));
  EXPECT_TRUE(refused({{kForward, 0}}, 2));
  EXPECT_TRUE(refused({}, 1));
  EXPECT_TRUE(refused({{kForward, -1}}, 1));
  EXPECT_TRUE(refused({{kForward, 0}, {kWeights, 0}, {kBackward, 0}}, 1));
  EXPECT_TRUE(refused({{kForward, 0},
                       {kForward, 1},
                       {kBackward, 0},
                       {kBackward, 1},
                       {kWeights, 0}},
                      2));
}

std::string Merged(Schedule schedule, int stages, int micro_batches) {
  std::string text;
  for (const auto& [stage, step] :
       MergePrograms(TrainPrograms(schedule, stages, micro_batches))) {
    absl::StrAppend(&text, text.empty() ? "" : " ", stage, ":",
                    ToString({step}));
  }
  return text;
}

TEST(MergePrograms, WhatIsSentIsTakenBeforeTheNextIsSent) {
  EXPECT_EQ(Merged(Schedule::kFillDrain, 1, 2), "0:F0 0:F1 0:B0 0:B1");
  EXPECT_EQ(Merged(Schedule::kFillDrain, 2, 2),
            "0:F0 1:F0 0:F1 1:F1 1:B0 0:B0 1:B1 0:B1");
  EXPECT_EQ(Merged(Schedule::kOneForwardOneBackward, 2, 3),
            "0:F0 1:F0 0:F1 1:B0 0:B0 1:F1 0:F2 1:B1 0:B1 1:F2 1:B2 0:B2");
}

TEST(MergePrograms, EveryStageKeepsItsOrder) {
  for (Schedule schedule :
       {Schedule::kFillDrain, Schedule::kOneForwardOneBackward,
        Schedule::kZeroBubble}) {
    for (int stages = 1; stages <= 4; ++stages) {
      const Programs programs = TrainPrograms(schedule, stages, 6);
      Programs split(programs.size());
      for (const auto& [stage, step] : MergePrograms(programs))
        split[static_cast<size_t>(stage)].push_back(step);
      EXPECT_EQ(split, programs);
    }
  }
}

TEST(MergePrograms, ProgramsThatWaitForEachOtherAreAnError) {
  const Instruction forward = {StageOp::kForward, 0};
  const Instruction backward = {StageOp::kBackward, 0};
  EXPECT_THROW(MergePrograms({{forward, backward}, {backward, forward}}),
               Error);
}

}  // namespace
}  // namespace baton::dist

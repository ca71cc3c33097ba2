// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::dist {
namespace {

using testing::Fails;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr char kTwoWorkers[] =
    "schedule 1f1b\n"
    "worker 0: 0F0 0F1 0BW0 0BW1\n"
    "worker 1: 1F0 1BW0 1F1 1BW1\n";

std::string WhyNot(const std::string& text) {
  const auto schedule = ParseSchedule(text);
  EXPECT_TRUE(absl::IsInvalidArgument(schedule.status())) << text;
  return std::string(schedule.status().message());
}

// Of one worker, in the words after "worker 0:".
std::string WhyNotAlone(const std::string& program) {
  return WhyNot("schedule x\nworker 0: " + program + "\n");
}

TEST(Schedule, IsReadAndWrittenAsText) {
  const auto schedule = ParseSchedule(kTwoWorkers);
  ASSERT_THAT(schedule, IsOk());
  EXPECT_EQ(schedule->name, "1f1b");
  EXPECT_EQ(schedule->stages(), 2);
  EXPECT_EQ(schedule->micro_batches(), 2);
  EXPECT_EQ(schedule->worker_of_stage(), (std::vector<int>{0, 1}));
  const Instruction last = {StageOp::kBackward, 1, 1};
  EXPECT_EQ(schedule->workers[1].back(), last);
  EXPECT_EQ(ToString(*schedule), kTwoWorkers);
}

TEST(Schedule, ATextMayHaveCommentsAndBlanks) {
  const auto schedule = ParseSchedule(
      "# by hand\n\n  schedule mine \r\nworker 0:\t0F0  0B0 0W0\r\n# end");
  ASSERT_THAT(schedule, IsOk());
  EXPECT_EQ(ToString(*schedule), "schedule mine\nworker 0: 0F0 0B0 0W0\n");
}

TEST(Schedule, AFileBringsItBack) {
  testing::TempFolder folder;
  const Schedule schedule = ParseSchedule(kTwoWorkers).value();
  ASSERT_THAT(SaveSchedule(folder / "schedule.txt", schedule), IsOk());
  EXPECT_EQ(LoadSchedule(folder / "schedule.txt").value(), schedule);
  EXPECT_THAT(LoadSchedule(folder / "none.txt"),
              Fails(absl::StatusCode::kNotFound,
                    "none.txt: cannot open: No such file or directory"));
  EXPECT_THAT(
      LoadSchedule(folder / ""),
      Fails(absl::StatusCode::kInvalidArgument, folder / "" + ": not a file"));
  folder.Write("wrong.txt", "schedule x\nworker 0: 0F0 0G0\n");
  EXPECT_THAT(
      std::string(LoadSchedule(folder / "wrong.txt").status().message()),
      HasSubstr("wrong.txt: line 2"));
  EXPECT_TRUE(absl::IsUnavailable(
      SaveSchedule(folder / "none/schedule.txt", schedule)));
}

TEST(Schedule, ATextThatIsWrongIsNamedByItsLine) {
  EXPECT_THAT(WhyNot("worker 0: 0F0\n"), HasSubstr("line 1: expected \"sched"));
  EXPECT_THAT(WhyNot("schedule x\nworker 1: 0F0\n"),
              HasSubstr("line 2: expected \"worker 0: ...\""));
  EXPECT_THAT(WhyNot("schedule x\nschedule y\n"), HasSubstr("line 2"));
  for (const char* word : {"F0", "0F", "0X0", "0WB0", "-1F0", "0F-1", "0F0x",
                           "0F99999999999", "+1F0", "0BWF1"}) {
    EXPECT_THAT(WhyNotAlone(word), HasSubstr(word));
  }
}

TEST(Schedule, MustBeWholeAndInOrder) {
  EXPECT_THAT(WhyNot(""), HasSubstr("0 instructions"));
  EXPECT_THAT(WhyNotAlone(""), HasSubstr("0 instructions"));
  EXPECT_THAT(WhyNotAlone("0BW0 0F0"), HasSubstr("0BW0 is out of place"));
  EXPECT_THAT(WhyNotAlone("0F1 0F0"), HasSubstr("0F1 is out of place"));
  EXPECT_THAT(WhyNotAlone("0F0 0F0"), HasSubstr("0F0 is out of place"));
  EXPECT_THAT(WhyNotAlone("0F0 0F1 0BW1 0BW0"), HasSubstr("0BW1 is out"));
  EXPECT_THAT(WhyNotAlone("0F0 0W0 0B0"), HasSubstr("0W0 is out of place"));
  EXPECT_THAT(WhyNotAlone("0F0 0BW0 0W0"), HasSubstr("0W0 is out of place"));
  // The gradients of weights would add up in another order.
  EXPECT_THAT(WhyNotAlone("0F0 0F1 0B0 0BW1 0W0"), HasSubstr("0BW1 is out"));
  EXPECT_THAT(WhyNotAlone("0F0 0F1 0BW0"), HasSubstr("stage 0 is not done"));
  EXPECT_THAT(WhyNotAlone("0F0 0B0"), HasSubstr("stage 0 is not done"));
  EXPECT_THAT(WhyNotAlone("2000000000F0"), HasSubstr("1 instructions"));
  EXPECT_THAT(ParseSchedule("schedule x\nworker 0: 0F0 0F1\n"), IsOk());
}

TEST(Schedule, EveryStageIsAtOneWorker) {
  EXPECT_THAT(WhyNot("schedule x\nworker 0: 0F0 0F1\nworker 1: 2F0 2F1\n"),
              HasSubstr("no worker has stage 1"));
  EXPECT_THAT(WhyNot("schedule x\nworker 0: 0F0 1F0 1BW0\nworker 1: 0BW0\n"),
              HasSubstr("0F0 is out of place"));
  EXPECT_THAT(WhyNot("schedule x\nworker 0: 0F0\nworker 1:\n"),
              HasSubstr("worker 1 has no stage"));
  EXPECT_THAT(WhyNot("schedule x\nworker 0: 0F0 0BW0\nworker 1: 1F0\n"),
              HasSubstr("some stages do no backwards"));
}

TEST(Schedule, WorkersMustNotWaitForEachOther) {
  EXPECT_THAT(WhyNot("schedule x\n"
                     "worker 0: 0F0 0BW0 0F1 0BW1\n"
                     "worker 1: 1F0 1F1 1BW0 1BW1\n"),
              HasSubstr("wait for each other: worker 0 at 0BW0, "
                        "worker 1 at 1F1"));
  // One worker with two stages can wait for itself.
  EXPECT_THAT(WhyNotAlone("1F0 0F0"), HasSubstr("worker 0 at 1F0"));
}

TEST(CheckProgram, GoesByTheStagesOfTheWorker) {
  const Program program = {{StageOp::kForward, 1, 0},
                           {StageOp::kForward, 3, 0}};
  EXPECT_THAT(CheckProgram(program, {1, 3}, 1), IsOk());
  EXPECT_FALSE(CheckProgram(program, {1}, 1).ok());
  EXPECT_FALSE(CheckProgram(program, {1, 2, 3}, 1).ok());
  EXPECT_FALSE(CheckProgram(program, {1, 3}, 2).ok());
  EXPECT_FALSE(CheckProgram({{StageOp::kForward, 1, -1}}, {1}, 1).ok());
  EXPECT_FALSE(CheckProgram({{static_cast<StageOp>(9), 1, 0}}, {1}, 1).ok());
}

}  // namespace
}  // namespace baton::dist

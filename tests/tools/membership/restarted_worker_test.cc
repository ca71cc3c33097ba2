// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a trainer and the others hear of a worker that baton-run starts again.
// The lease is a minute: who had to wait for it would wait for that long.

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// The milliseconds in the line that begins so.
int MillisecondsAfter(const std::string& output, const std::string& words) {
  const size_t at = output.find(words);
  if (at == std::string::npos) return -1;
  return std::atoi(output.c_str() + at + words.size());
}

TEST(RestartedWorker, IsMissedAndFoundAgainByAllLongBeforeTheLease) {
  const Outcome outcome = RunProgram(
      {"baton-run", "--workers=2", "--restarts=2",
       "--worker_program=restart_watcher", "--", "restart_watcher", "worker1"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string line :
       {"worker1 lost after ", "worker1 is back after ",
        "worker2 heard after "}) {
    const int ms = MillisecondsAfter(outcome.output, line);
    EXPECT_GE(ms, 0) << outcome.output;
    EXPECT_LT(ms, 20'000) << outcome.output;
    RecordProperty(line.substr(0, line.find(" after")), ms);
  }
  EXPECT_THAT(outcome.output, ContainsRegex("worker2 heard after [0-9]+ ms: .*"
                                            "was killed by signal 9"));
  EXPECT_THAT(outcome.output,
              ContainsRegex("baton-run: worker1 .* was killed by signal 9 .*; "
                            "started again as process [0-9]+, 1 of 2 times"));
  EXPECT_THAT(outcome.output, HasSubstr("0 spares, 2 others"));
}

TEST(RestartedWorker, MayBeASpare) {
  const Outcome outcome =
      RunProgram({"baton-run", "--workers=2", "--spares=2", "--restarts=2",
                  "--worker_program=restart_watcher", "--", "restart_watcher",
                  "spare2", "worker1", "spare1"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string name : {"spare2", "worker1", "spare1"}) {
    EXPECT_THAT(outcome.output, HasSubstr(name + " is back after "));
    EXPECT_THAT(outcome.output, HasSubstr("baton-run: " + name + " "));
  }
  EXPECT_THAT(outcome.output, HasSubstr("2 spares, 2 others"));
}

}  // namespace
}  // namespace baton::tools

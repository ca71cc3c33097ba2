// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program_path.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::examples {
namespace {

// Of these words each tells the next one.
std::string WriteText(const testing::TempFolder& folder) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "my dog ran to its home\n";
  return folder.Write("text", text);
}

TEST(RnnProgram, LearnsThoughTheWorkerWithItsEndsIsKilled) {
  const testing::TempFolder folder;
  const std::string program = testing::ProgramPath("rnn");
  bool killed = false;
  const tools::Outcome outcome = tools::RunProgram(
      {"baton-run", "--workers=2", "--may_lose_workers",
       "--worker_program=" + program, "--", program,
       "--data=" + WriteText(folder), "--width=16", "--batch=4", "--length=7",
       "--epochs=6", "--dropout=0", "--optimizer=adam", "--lr=0.02",
       "--checkpoint_dir=" + folder / "saved", "--save_every=10",
       "--json=" + folder / "results.jsonl"},
      [&](const std::string& output, const tools::Process& launcher) {
        if (killed || output.find("step 1/") == std::string::npos) return;
        killed = true;
        const pid_t worker = tools::WorkerOf(launcher.pid, "worker1");
        ASSERT_GT(worker, 0);
        ::kill(worker, SIGKILL);
      });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(killed);
  std::ifstream file(folder / "results.jsonl");
  const auto line = nlohmann::json::parse(file);
  EXPECT_EQ(line["lost_workers"], 1) << outcome.output;
  EXPECT_LT(line["perplexity"], 1.2);
}

}  // namespace
}  // namespace baton::examples

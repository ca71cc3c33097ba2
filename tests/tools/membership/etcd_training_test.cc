// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Programs that meet by etcd train while a node of it and the rendezvous die.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/etcd_nodes.h"
#include "tests/tools/membership/candidate_processes.h"
#include "tests/tools/programs/run_program.h"

namespace baton::testing {
namespace {

using tools::Daemon;
using tools::Outcome;
using tools::Process;
using tools::RunProgram;

// The lines of steps that are complete.
std::vector<std::string> StepsIn(const std::string& output) {
  std::vector<std::string> lines = absl::StrSplit(output, '\n');
  lines.pop_back();
  std::erase_if(lines, [](const std::string& line) {
    return line.rfind("step ", 0) != 0;
  });
  return lines;
}

class EtcdTraining : public ::testing::Test {
 protected:
  std::vector<std::string> ToyModel(const std::string& name) const {
    return {"toy_model", "--name=" + name, "--rendezvous=" + nodes_.address(),
            "--world_size=3"};
  }

  EtcdNodes nodes_;
  CandidateProcesses candidates_{nodes_.address(), 1};
  size_t serving_ = candidates_.AwaitServing();
};

// Its losses are those of a training that nothing happens to.
TEST_F(EtcdTraining, GoesOnWhileANodeOfEtcdAndTheRendezvousDie) {
  Daemon front(ToyModel("worker1")), back(ToyModel("worker2"));
  std::vector<std::string> trainer = ToyModel("trainer");
  trainer.push_back("--steps=1000000000");
  std::atomic<bool> begun = false, taken = false;
  std::thread killer([&] {
    begun.wait(false);
    nodes_.Kill(0);
    candidates_.Kill(serving_);
    EXPECT_LT(candidates_.AwaitServing(), CandidateProcesses::kCount);
    taken = true;
  });
  std::ptrdiff_t last = 0;  // so many lines are wanted
  const Outcome disturbed = RunProgram(
      trainer, [&](const std::string& output, const Process& process) {
        const auto lines = std::count(output.begin(), output.end(), '\n');
        if (lines > 0 && !begun.exchange(true)) begun.notify_all();
        // More than what the program had not written yet.
        if (taken && last == 0) last = lines + 1000;
        if (last > 0 && lines >= last) SendSignal(process, SIGKILL);
      });
  begun = true;
  begun.notify_all();
  killer.join();
  const std::vector<std::string> steps = StepsIn(disturbed.output);
  EXPECT_GT(last, 0) << disturbed.output;
  const Outcome undisturbed =
      RunProgram({"baton-run", "--workers=2", "--worker_program=toy_model",
                  "--", "toy_model", "--steps=500"});
  const std::vector<std::string> wanted = StepsIn(undisturbed.output);
  ASSERT_EQ(wanted.size(), 500u) << undisturbed.output;
  ASSERT_GE(steps.size(), wanted.size());
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), steps.begin()));
}

TEST_F(EtcdTraining, IsLaunchedOverSeveralNodes) {
  const auto node = [&](int number) {
    return std::vector<std::string>{"baton-run",
                                    "--nodes=2",
                                    absl::StrCat("--node=", number),
                                    "--rendezvous=" + nodes_.address(),
                                    "--workers=1",
                                    "--worker_program=toy_model"};
  };
  Outcome second;
  std::thread other([&] { second = RunProgram(node(1)); });
  std::vector<std::string> first = node(0);
  first.insert(first.end(), {"--", "toy_model", "--steps=3"});
  const Outcome outcome = RunProgram(first);
  other.join();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_THAT(outcome.output, ::testing::HasSubstr("step 3: loss "));
}

}  // namespace
}  // namespace baton::testing

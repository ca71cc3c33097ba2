// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A cluster started by hand: a rendezvous, a daemon, and trainers that come and
// go.

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

// Calls `then` with the address once baton-rendezvous serves, then ends it.
Outcome WithRendezvous(const std::function<void(const std::string&)>& then) {
  bool served = false;
  return RunProgram(
      {"baton-rendezvous", "--listen=127.0.0.1:0"},
      [&](const std::string& output, const Process& process) {
        if (served || output.find('\n') == std::string::npos) return;
        served = true;
        const std::string before = "rendezvous at ";
        ASSERT_EQ(output.find(before), 0u) << output;
        then(output.substr(before.size(), output.find('\n') - before.size()));
        SendSignal(process, SIGTERM);
      });
}

std::vector<std::string> Toy(const std::string& name,
                             const std::string& place) {
  return {"toy_model", "--name=" + name, "--rendezvous=" + place,
          "--world_size=3", "--steps=1"};
}

TEST(BatonRendezvous, DaemonsThatMeetThereServeOneTrainerAfterTheOther) {
  const Outcome outcome = WithRendezvous([](const std::string& place) {
    Daemon one(Toy("worker1", place));
    Daemon two(Toy("worker2", place));
    for (int run = 0; run < 2; ++run) {
      const Outcome trained = RunProgram(Toy("trainer", place));
      EXPECT_EQ(trained.code, 0) << trained.output;
      EXPECT_THAT(trained.output, HasSubstr("step 1: loss"));
    }
    EXPECT_EQ(one.End(SIGTERM), 0);
    EXPECT_EQ(two.End(SIGTERM), 0);
  });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// The address is for documents: nobody has it.
TEST(BatonWorker, SaysThatNoOtherMachineReachesIt) {
  const std::vector<std::string> args = {
      "baton-worker",   "--name=a",   "--rendezvous=198.51.100.7:1",
      "--world_size=2", "--insecure", "--join_timeout=300ms"};
  const Outcome outcome = RunProgram(args);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("--listen=HOST:0"));
  std::vector<std::string> told = args;
  told.push_back("--advertise_host=198.51.100.8");
  EXPECT_THAT(RunProgram(told).output,
              ::testing::Not(HasSubstr("--listen=HOST:0")));
}

TEST(BatonRendezvous, SaysWhatIsWrong) {
  EXPECT_EQ(RunProgram({"baton-rendezvous", "--listen=here"}).code, 2);
  const Outcome open = RunProgram({"baton-rendezvous", "--listen=0.0.0.0:0"});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.output, HasSubstr("--tls_dir"));
  const Outcome outcome = WithRendezvous([](const std::string& place) {
    const Outcome second =
        RunProgram({"baton-rendezvous", "--listen=" + place});
    EXPECT_EQ(second.code, 1);
    EXPECT_THAT(second.output, HasSubstr(place));
  });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace baton::tools

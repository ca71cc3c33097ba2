// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A cluster started by hand: a rendezvous, a daemon, and trainers that come and
// go.

#include "rpc/rendezvous.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/program_path.h"
#include "tests/support/within.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

// Calls `then` with the address once baton-rendezvous serves, then ends it.
Outcome WithRendezvous(const std::function<void(const std::string&)>& then,
                       const std::vector<std::string>& flags = {}) {
  std::vector<std::string> command = {"baton-rendezvous",
                                      "--listen=127.0.0.1:0"};
  command.insert(command.end(), flags.begin(), flags.end());
  bool served = false;
  return RunProgram(std::move(command), [&](const std::string& output,
                                            const Process& process) {
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

TEST(BatonRendezvous, RefusesClustersThatAreLargerThanItAdmits) {
  const Outcome outcome = WithRendezvous(
      [](const std::string& place) {
        const Outcome refused = RunProgram(Toy("trainer", place));
        EXPECT_EQ(refused.code, 1);
        EXPECT_THAT(refused.output,
                    HasSubstr("a cluster of 3 workers, but its rendezvous "
                              "admits 2 (baton-run --max_workers, "
                              "baton-rendezvous --max_members)"));
      },
      {"--max_members=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// What joins a cluster that has met.
std::vector<std::string> OneMore(const std::string& name,
                                 const std::string& place) {
  return {"baton-worker", "--name=" + name, "--rendezvous=" + place, "--extra"};
}

// Waits for it.
void ExpectToJoin(const std::string& name, const std::string& place) {
  EXPECT_TRUE(testing::Within(std::chrono::seconds(30), [&] {
    const auto there =
        rpc::ListWorkers(place, "baton", std::chrono::seconds(10));
    return there.ok() && absl::c_any_of(*there, [&](const auto& worker) {
             return worker.name == name;
           });
  })) << name;
}

TEST(BatonRun, LetsOthersJoinUpToMaxWorkers) {
  bool met = false;
  const auto look = [&](const std::string& output, const Process& launcher) {
    const std::string before = "at place ";
    const size_t at = output.find(before);
    if (met || at == std::string::npos ||
        output.find("serving at", at) == std::string::npos)
      return;
    met = true;
    const size_t begin = at + before.size();
    const std::string place =
        output.substr(begin, output.find('\n', begin) - begin);
    Daemon first(OneMore("first", place));
    ExpectToJoin("first", place);
    const Outcome refused = RunProgram(OneMore("second", place));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.output, HasSubstr("--max_workers"));
    EXPECT_EQ(first.End(SIGTERM), 0);
    Daemon second(OneMore("second", place));
    ExpectToJoin("second", place);
    SendSignal(launcher, SIGTERM);
  };
  const Outcome outcome = RunProgram(
      {"baton-run", "--workers=1", "--max_workers=2", "--", "/bin/sh", "-c",
       "echo at place $BATON_RENDEZVOUS; exec " +
           testing::ProgramPath("baton-worker") + " --log=info"},
      look);
  EXPECT_TRUE(met) << outcome.output;
}

TEST(BatonRun, RefusesMoreWorkersThanItsMost) {
  const Outcome outcome = RunProgram({"baton-run", "--workers=2", "--spares=1",
                                      "--max_workers=2", "--", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("--max_workers must be at least"));
}

TEST(BatonRendezvous, SaysWhatIsWrong) {
  EXPECT_EQ(RunProgram({"baton-rendezvous", "--listen=here"}).code, 2);
  EXPECT_EQ(RunProgram({"baton-rendezvous", "--max_members=-1"}).code, 2);
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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// baton-run on several machines, all of which are this one.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A port of this machine that nobody listens on.
int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const bare = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, bare, size), 0);
  EXPECT_EQ(::getsockname(socket, bare, &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

// Sees all output of a node so far, and its baton-run.
using OnOutput = std::function<void(const std::string&, const Process&)>;

class NodesTest : public ::testing::Test {
 protected:
  // Two nodes with a worker each, which a script is.
  struct Outcomes {
    Outcome first, second;
  };
  Outcomes RunBoth(const std::string& worker,
                   const std::vector<std::string>& flags,
                   const std::vector<std::string>& trainer,
                   const OnOutput& on_second = nullptr) {
    Outcomes outcomes;
    std::thread second([&] {
      outcomes.second = RunProgram(CommandOf(1, worker, flags), on_second);
    });
    std::vector<std::string> first = CommandOf(0, worker, flags);
    first.emplace_back("--");
    first.insert(first.end(), trainer.begin(), trainer.end());
    outcomes.first = RunProgram(first);
    second.join();
    return outcomes;
  }
  // A worker or trainer that does as the script says.
  std::string Script(const std::string& name, const std::string& text) const {
    const std::string path = folder_.Write(name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string Daemon() const {
    return Script("daemon", "echo ready; exec tail -f /dev/null");
  }

 private:
  std::vector<std::string> CommandOf(
      int node, const std::string& worker,
      const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {
        "baton-run",
        "--nodes=2",
        absl::StrCat("--node=", node),
        absl::StrCat("--rendezvous=127.0.0.1:", port_),
        "--workers=1",
        absl::StrCat("--worker_program=", worker)};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }

  const testing::TempFolder folder_;
  const int port_ = FreePort();
};

TEST_F(NodesTest, TrainOneModel) {
  const std::string model = testing::ProgramPath("toy_model");
  const Outcomes outcomes = RunBoth(model, {}, {model, "--steps=3"});
  EXPECT_EQ(outcomes.first.code, 0) << outcomes.first.output;
  EXPECT_THAT(outcomes.first.output, HasSubstr("step 3: loss"));
  EXPECT_EQ(outcomes.second.code, 0) << outcomes.second.output;
}

TEST_F(NodesTest, AllGiveTheTrainersCode) {
  const Outcomes outcomes = RunBoth(Daemon(), {}, {Script("t", "exit 7")});
  EXPECT_EQ(outcomes.first.code, 7) << outcomes.first.output;
  EXPECT_EQ(outcomes.second.code, 7) << outcomes.second.output;
}

TEST_F(NodesTest, NumberTheirWorkersOneAfterTheOther) {
  const std::string names =
      Script("names",
             "echo \"$BATON_NAME $BATON_RANK of $BATON_WORLD_SIZE\"; sleep 1");
  const Outcomes outcomes = RunBoth(names, {"--workers=2", "--spares=1"},
                                    {Script("t", "exec sleep 1")});
  for (const char* line : {"worker1 1 of 5\n", "worker2 2 of 5\n", "spare1 "})
    EXPECT_THAT(outcomes.first.output, HasSubstr(line));
  for (const char* line : {"worker3 3 of 5\n", "worker4 4 of 5\n", "spare2 "})
    EXPECT_THAT(outcomes.second.output, HasSubstr(line));
}

TEST_F(NodesTest, ALostWorkerOfAnotherNodeEndsTheRun) {
  const std::string lost =
      Script("lost", "test $BATON_NAME = worker1 || exit 3; exec sleep 1000");
  const Outcomes outcomes = RunBoth(lost, {}, {Script("t", "exec sleep 1000")});
  EXPECT_EQ(outcomes.first.code, 1);
  EXPECT_THAT(outcomes.first.output,
              ContainsRegex("worker2 \\(process [0-9]+\\) ended with code 3; 1 "
                            "of 2 workers are left; stopping the others"));
  EXPECT_EQ(outcomes.second.code, 1);
}

TEST_F(NodesTest, GoOnWithoutAWorkerThatMayBeLost) {
  const std::string lost = Script("lost", "exit 3");
  const Outcomes outcomes = RunBoth(lost, {"--min_workers=0", "--restarts=1"},
                                    {Script("t", "sleep 1; exit 4")});
  EXPECT_EQ(outcomes.first.code, 4);
  EXPECT_THAT(outcomes.first.output, HasSubstr("; 0 of 2 workers are left"));
  EXPECT_THAT(outcomes.second.output,
              HasSubstr("ended with code 3; started again as process"));
  EXPECT_EQ(outcomes.second.code, 1);
}

TEST_F(NodesTest, ALostNodeTakesItsWorkersWithIt) {
  const Outcomes outcomes =
      RunBoth(Daemon(), {}, {Script("t", "exec sleep 1000")},
              [](const std::string& output, const Process& process) {
                if (output.find("ready") != std::string::npos)
                  ::kill(process.pid, SIGKILL);
              });
  EXPECT_EQ(outcomes.first.code, 1);
  EXPECT_THAT(outcomes.first.output, HasSubstr("baton-run: node 1 is lost: "));
  EXPECT_THAT(outcomes.first.output,
              HasSubstr("1 of 2 workers are left; stopping the others"));
}

TEST_F(NodesTest, EndWithTheFirstOne) {
  const Outcomes outcomes =
      RunBoth(Daemon(), {}, {Script("t", "kill -9 $PPID")});
  EXPECT_EQ(outcomes.first.code, 128 + SIGKILL);
  EXPECT_EQ(outcomes.second.code, 1);
  EXPECT_THAT(outcomes.second.output, HasSubstr("baton-run: node 0 is lost: "));
}

TEST_F(NodesTest, AnInterruptAtOneEndsAll) {
  const Outcomes outcomes =
      RunBoth(Daemon(), {}, {Script("t", "exec sleep 1000")},
              [](const std::string& output, const Process& process) {
                if (output.find("ready") != std::string::npos &&
                    output.find("stopping") == std::string::npos)
                  ::kill(process.pid, SIGINT);
              });
  EXPECT_EQ(outcomes.second.code, 128 + SIGINT);
  EXPECT_EQ(outcomes.first.code, 1);
  EXPECT_THAT(outcomes.first.output,
              HasSubstr("node 1 is lost: it was stopped"));
}

TEST(Nodes, SayWhichFlagIsWrong) {
  const auto said = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "baton-run");
    const Outcome outcome = RunProgram(flags);
    EXPECT_EQ(outcome.code, 2);
    return outcome.output;
  };
  EXPECT_THAT(said({"--nodes=2", "--node=2", "--rendezvous=127.0.0.1:1"}),
              HasSubstr("--node=2 of --nodes=2: the first is 0, the last 1"));
  EXPECT_THAT(said({"--nodes=2"}), HasSubstr("--nodes needs --rendezvous"));
  EXPECT_THAT(said({"--rendezvous=127.0.0.1:1"}), HasSubstr("are for --nodes"));
  EXPECT_THAT(said({"--nodes=0"}), HasSubstr("--nodes must be 1"));
  EXPECT_THAT(said({"--nodes=2", "--rendezvous=127.0.0.1:1"}),
              HasSubstr("no trainer"));
}

TEST(Nodes, NameTheOneThatDoesNotCome) {
  const std::string meet = absl::StrCat("--rendezvous=127.0.0.1:", FreePort());
  const Outcome first = RunProgram(
      {"baton-run", "--nodes=2", meet, "--join_timeout=500ms", "--", "true"});
  EXPECT_EQ(first.code, 1);
  EXPECT_THAT(first.output, HasSubstr("1 of 2 workers came"));
  const Outcome second = RunProgram(
      {"baton-run", "--nodes=2", "--node=1", meet, "--join_timeout=500ms"});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.output, HasSubstr("cannot reach the rendezvous at 127"));
}

}  // namespace
}  // namespace baton::tools

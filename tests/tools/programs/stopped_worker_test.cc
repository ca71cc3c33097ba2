// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// batonctl, when a worker of the cluster no longer answers.

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rendezvous.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Two workers that met at a rendezvous: alice, and bob, who can be stopped. The
// lease is long, so that nobody gives bob up meanwhile.
class StoppedWorker : public ::testing::Test {
 protected:
  std::vector<std::string> Worker(const std::string& name,
                                  const std::string& log) const {
    return {"baton-worker",   "--name=" + name, Where(),
            "--world_size=2", "--lease=60s",    "--log=" + log};
  }
  std::string Where() const { return "--rendezvous=" + rendezvous_->address(); }

  // Whoever waits for bob while he is stopped uses up all the time.
  Outcome Ask(std::vector<std::string> words,
              const std::string& timeout = "30s") const {
    words.insert(words.begin(), "batonctl");
    words.push_back("--timeout=" + timeout);
    return RunProgram(words);
  }
  // Calls `look` when both serve, then ends alice.
  void Meet(const std::function<void(Daemon& bob)>& look) {
    Daemon bob(Worker("bob", "error"));
    bool looked = false;
    const Outcome alice = RunProgram(
        Worker("alice", "info"),
        [&](const std::string& output, const Process& self) {
          if (looked || output.find("serving at") == std::string::npos) return;
          looked = true;
          look(bob);
          bob.End(SIGKILL);
          SendSignal(self, SIGTERM);
        });
    EXPECT_TRUE(looked) << alice.output;
  }

  const std::unique_ptr<rpc::RendezvousServer> rendezvous_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
};

TEST_F(StoppedWorker, IsNamedWithItsReasonAndTheOthersAreShown) {
  Meet([this](Daemon& bob) {
    const Outcome before = Ask({"status", Where()});
    EXPECT_EQ(before.code, 0) << before.output;
    EXPECT_THAT(before.output, ContainsRegex("\nbob +[01]  cpu +idle"));
    bob.Stop();
    const Outcome stopped = Ask({"status", Where()}, "3s");
    EXPECT_EQ(stopped.code, 1) << stopped.output;
    EXPECT_THAT(stopped.output, ContainsRegex("\nalice +[01]  cpu +idle"));
    EXPECT_THAT(stopped.output,
                ContainsRegex("\nbob +[01] .* no answer .*bob"));
    EXPECT_THAT(stopped.output, ContainsRegex("\nbatonctl: .*bob"));
    EXPECT_THAT(stopped.output, Not(ContainsRegex("\nbatonctl: .*alice")));
    bob.Continue();
    const Outcome after = Ask({"status", Where()});
    EXPECT_EQ(after.code, 0) << after.output;
    EXPECT_THAT(after.output, ContainsRegex("\nbob +[01]  cpu +idle"));
  });
}

TEST_F(StoppedWorker, FailsEveryCommandWhenItIsTheOneThatIsAsked) {
  Meet([this](Daemon& bob) {
    const auto workers = rpc::ListWorkers(rendezvous_->address(), "baton",
                                          std::chrono::seconds(5));
    ASSERT_TRUE(workers.ok()) << workers.status();
    std::string place;
    for (const rpc::WorkerInfo& worker : *workers) {
      if (worker.name == "bob")
        place = worker.address.substr(0, worker.address.find(';'));
    }
    bob.Stop();
    for (const std::string command : {"status", "rrefs", "contexts"}) {
      const Outcome outcome = Ask({command, "--worker=bob=" + place}, "1s");
      EXPECT_EQ(outcome.code, 1) << outcome.output;
      EXPECT_THAT(outcome.output, HasSubstr("batonctl: "));
      EXPECT_THAT(outcome.output, HasSubstr(place));
    }
  });
}

}  // namespace
}  // namespace baton::tools

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/run_all.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_files.h"
#include "tools/launch/run_signals.h"

namespace baton::tools {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs until it is asked to end.
constexpr char kDaemon[] = "echo ready; exec tail -f /dev/null";
// The same, and takes its leave.
constexpr char kPolite[] =
    "trap 'echo bye; exit 0' TERM; echo ready; tail -f /dev/null & wait";
// Does not end when asked.
constexpr char kStubborn[] =
    "trap '' TERM INT; echo ready; exec tail -f /dev/null";

class RunAllTest : public ::testing::Test {
 protected:
  void AddWorker(const std::string& script) {
    ProcessSpec spec = Shell(script);
    spec.name = absl::StrCat("worker", plan_.workers.size() + 1);
    spec.capture_output = true;
    spec.own_group = true;
    plan_.workers.push_back(std::move(spec));
  }
  static ProcessSpec Shell(const std::string& script) {
    ProcessSpec spec;
    spec.args = {"/bin/sh", "-c", script};
    return spec;
  }
  // The exit code, or -1 when something could not be started. `on_line` sees
  // each line as it comes.
  int Run(const std::string& trainer,
          const std::function<void(const std::string&)>& on_line = nullptr) {
    plan_.trainer = Shell(trainer);
    plan_.trainer->name = "trainer";
    plan_.print = [this, on_line](const std::string& line) {
      lines_.push_back(line);
      if (on_line) on_line(line);
    };
    auto code = RunAll(plan_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  RunPlan plan_;
  std::vector<std::string> lines_;
};

TEST_F(RunAllTest, GivesTheTrainersCodeAndEndsTheWorkers) {
  AddWorker(kDaemon);
  AddWorker(kDaemon);
  EXPECT_EQ(Run("exit 7"), 7);
  EXPECT_THAT(lines_, Not(Contains(HasSubstr("baton-run"))));
}

TEST_F(RunAllTest, PutsTheNameBeforeEachLineOfAWorker) {
  AddWorker("printf 'one\\ntwo'; exit 0");
  EXPECT_EQ(Run("exit 0"), 0);
  AddWorker(kPolite);
  int code = Run("exec tail -f /dev/null", [](const std::string& line) {
    if (line == "[worker2] ready") ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_THAT(lines_, Contains("[worker1] one"));
  EXPECT_THAT(lines_, Contains("[worker1] two"));
  EXPECT_THAT(lines_, Contains("[worker2] bye"));
}

TEST_F(RunAllTest, NamesTheWorkerThatDiedAndEndsAllOthers) {
  AddWorker(kDaemon);
  AddWorker("exit 3");
  EXPECT_EQ(Run("exec tail -f /dev/null"), 1);
  EXPECT_THAT(lines_, Contains(::testing::ContainsRegex(
                          "baton-run: worker2 \\(process [0-9]+\\) ended with "
                          "code 3; 1 of 2 workers are left; stopping the "
                          "others")));
}

TEST_F(RunAllTest, GoesOnWithoutAWorkerThatMayBeLost) {
  plan_.min_workers = 1;
  AddWorker(kDaemon);
  AddWorker("exit 3");
  const testing::TempFolder folder;
  const std::string told = folder / "told";
  ASSERT_EQ(::mkfifo(told.c_str(), 0600), 0);
  const int code =
      Run(absl::StrCat("read line <", told, "; exit 4"),
          [&](const std::string& line) {
            if (line.find("ended with code 3") != std::string::npos)
              std::ofstream(told) << "go on\n";
          });
  EXPECT_EQ(code, 4);
  EXPECT_THAT(lines_, Contains(HasSubstr("code 3; 1 of 2 workers are left")));
  EXPECT_THAT(lines_, Not(Contains(HasSubstr("stopping the others"))));
}

TEST_F(RunAllTest, EndsTheRunWhenFewerWorkersAreLeftThanItNeeds) {
  plan_.min_workers = 2;
  AddWorker(kDaemon);
  AddWorker("exit 3");
  AddWorker("exit 4");
  EXPECT_EQ(Run("exec tail -f /dev/null"), 1);
  EXPECT_THAT(lines_, Contains(HasSubstr("; 2 of 3 workers are left")));
  EXPECT_THAT(lines_, Contains(HasSubstr("; 1 of 3 workers are left; stopping "
                                         "the others")));
}

TEST_F(RunAllTest, ALostSpareIsToldOfAndMissedByNobody) {
  AddWorker(kDaemon);
  plan_.spares = {Shell("exit 3"), Shell(kPolite)};
  for (ProcessSpec& spare : plan_.spares) spare.capture_output = true;
  plan_.spares[0].name = "spare1";
  plan_.spares[1].name = "spare2";
  std::vector<std::string> ended;
  plan_.on_end = [&](const std::string& name, const std::string& how) {
    ended.push_back(absl::StrCat(name, " ", how));
  };
  const testing::TempFolder folder;
  const std::string told = folder / "told";
  ASSERT_EQ(::mkfifo(told.c_str(), 0600), 0);
  const int code = Run(absl::StrCat("read line <", told, "; exit 4"),
                       [&](const std::string& line) {
                         if (line.ends_with("; 1 of 2 spares are left"))
                           std::ofstream(told) << "go on\n";
                       });
  EXPECT_EQ(code, 4);
  EXPECT_THAT(lines_, Contains("[spare2] bye"));
  EXPECT_EQ(ended.front(), "spare1 ended with code 3");
  EXPECT_EQ(ended.size(), 3u);
}

TEST_F(RunAllTest, StartsAWorkerThatDiedAgainAsItWas) {
  plan_.restarts.most = 1;
  const testing::TempFolder folder;
  const std::string died = folder / "died";
  AddWorker(absl::StrCat("echo life of $WORD; [ -e ", died, " ] || { touch ",
                         died, "; kill -KILL $$; }; exec tail -f /dev/null"));
  plan_.workers.back().environment = {{"WORD", "one"}};
  const std::string told = folder / "told";
  ASSERT_EQ(::mkfifo(told.c_str(), 0600), 0);
  int lives = 0;
  const int code = Run(absl::StrCat("read line <", told, "; exit 4"),
                       [&](const std::string& line) {
                         if (line == "[worker1] life of one" && ++lives == 2)
                           std::ofstream(told) << "go on\n";
                       });
  EXPECT_EQ(code, 4);
  EXPECT_EQ(lives, 2);
  EXPECT_THAT(lines_, Contains(::testing::ContainsRegex(
                          "baton-run: worker1 \\(process [0-9]+\\) was killed "
                          "by signal 9 .*; started again as process [0-9]+, 1 "
                          "of 1 times within 300 s$")));
}

TEST_F(RunAllTest, EndsTheRunForAWorkerThatFailsTooOften) {
  plan_.restarts.most = 2;
  AddWorker(kDaemon);
  AddWorker("echo life; exit 3");
  EXPECT_EQ(Run("exec tail -f /dev/null"), 1);
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "[worker2] life"), 3);
  EXPECT_EQ(std::count_if(lines_.begin(), lines_.end(),
                          [](const std::string& line) {
                            return line.starts_with("baton-run: worker2 ");
                          }),
            4);
  EXPECT_THAT(lines_, Contains(HasSubstr("ended with code 3; was started again "
                                         "2 of 2 times within 300 s; 1 of "
                                         "2 workers are left; stopping")));
  // Not at once, the second time.
  EXPECT_THAT(lines_, Contains(HasSubstr("; is started again in 100 ms, 2 of 2 "
                                         "times within 300 s")));
  EXPECT_THAT(lines_, Contains(::testing::MatchesRegex(
                          "baton-run: worker2 started again as process .*")));
}

TEST_F(RunAllTest, StartsATrainerThatDiedAgainBesideItsWorkers) {
  plan_.trainer_restarts = 1;
  AddWorker("echo worker; exec tail -f /dev/null");
  std::vector<std::string> ended;
  plan_.on_end = [&](const std::string& name, const std::string&) {
    ended.push_back(name);
  };
  const testing::TempFolder folder;
  const std::string died = folder / "died";
  EXPECT_EQ(Run(absl::StrCat("[ -e ", died, " ] && exit 4; touch ", died,
                             "; kill -KILL $$")),
            4);
  EXPECT_EQ(ended.front(), "trainer");
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "[worker1] worker"), 1);
  EXPECT_THAT(lines_, Contains(::testing::ContainsRegex(
                          "baton-run: trainer \\(process [0-9]+\\) was killed "
                          "by signal 9 .*; started again as process [0-9]+, 1 "
                          "of 1 times within 300 s$")));
  EXPECT_THAT(lines_, Contains(HasSubstr("ended with code 4; was started again "
                                         "1 of 1 times within 300 s")));
}

TEST_F(RunAllTest, TellsWhatStartsAKilledTrainerAgain) {
  AddWorker(kDaemon);
  EXPECT_EQ(Run("kill -KILL $$"), 128 + SIGKILL);
  EXPECT_THAT(lines_,
              Contains("baton-run: trainer was killed by signal 9 (Killed); "
                       "--trainer_restarts starts it again"));
}

TEST_F(RunAllTest, StartsNoTrainerAgainThatWasCalledWrongly) {
  plan_.trainer_restarts = 3;
  AddWorker(kDaemon);
  EXPECT_EQ(Run("exit 2"), 2);
  EXPECT_THAT(lines_, ::testing::Not(Contains(HasSubstr("started again"))));
}

TEST_F(RunAllTest, StartsNoWorkerAgainOnceTheRunEnds) {
  plan_.restarts.most = 5;
  AddWorker("trap 'exit 3' TERM; echo ready; tail -f /dev/null & wait");
  AddWorker("trap 'kill -KILL $$' TERM; echo ready; tail -f /dev/null & wait");
  int ready = 0;
  const int code = Run("exec tail -f /dev/null", [&](const std::string& line) {
    if (line.ends_with("] ready") && ++ready == 2) ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_EQ(ready, 2);
  EXPECT_THAT(lines_, Not(Contains(HasSubstr("started again"))));
}

TEST_F(RunAllTest, SaysWhichSignalKilledAWorker) {
  AddWorker("kill -SEGV $$");
  EXPECT_EQ(Run("exec tail -f /dev/null"), 1);
  EXPECT_THAT(lines_, Contains(HasSubstr("was killed by signal 11")));
}

TEST_F(RunAllTest, PassesSignalsOnToTheTrainer) {
  AddWorker(kDaemon);
  int code = Run("trap 'kill $!; exit 5' INT; tail -f /dev/null & wait",
                 [](const std::string& line) {
                   if (line == "[worker1] ready") ::kill(::getpid(), SIGINT);
                 });
  // A trainer that had not set its trap yet dies of the signal.
  EXPECT_THAT(code, ::testing::AnyOf(5, 128 + SIGINT));
}

TEST_F(RunAllTest, KillsWhoDoesNotEndInTime) {
  plan_.grace = std::chrono::milliseconds(100);
  AddWorker(kStubborn);
  int code = Run("exec tail -f /dev/null", [](const std::string& line) {
    if (line == "[worker1] ready") ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_THAT(lines_, Contains(HasSubstr("did not end within 100 ms")));
}

TEST_F(RunAllTest, TheSecondSignalKillsAtOnce) {
  plan_.grace = std::chrono::hours(1);
  AddWorker(kStubborn);
  EXPECT_NE(Run(kStubborn,
                [](const std::string& line) {
                  if (line == "[worker1] ready") ::kill(::getpid(), SIGTERM);
                  if (line.find("stopping") != std::string::npos)
                    ::kill(::getpid(), SIGINT);
                }),
            0);
}

TEST_F(RunAllTest, StartsNobodyAfterASignal) {
  BlockSignals();
  ::kill(::getpid(), SIGTERM);
  AddWorker(kDaemon);
  const testing::TempFolder folder;
  const std::string sign = folder.path() + "/trainer_was_here";
  EXPECT_EQ(Run("touch " + sign), 128 + SIGTERM);
  EXPECT_NE(::access(sign.c_str(), F_OK), 0);
  EXPECT_THAT(lines_, ::testing::ElementsAre(HasSubstr("stopping")));
}

TEST_F(RunAllTest, StartsNothingWhenAProgramIsMissing) {
  AddWorker(kDaemon);
  plan_.trainer = Shell("");
  plan_.trainer->args = {"/no/such/trainer"};
  auto code = RunAll(plan_);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(code.status().message()),
              HasSubstr("/no/such/trainer"));
}

// Every process of the run holds the write end of a pipe: the end of file on
// the other end comes when none of them is left.
TEST_F(RunAllTest, NoProcessOutlivesAKilledLauncher) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int started[2];
  ASSERT_EQ(::pipe(started), 0);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    AddWorker(kStubborn);
    Run(kStubborn, [&](const std::string&) {
      [[maybe_unused]] ssize_t n = ::write(started[1], "x", 1);
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  ::close(started[1]);
  char byte;
  ASSERT_EQ(::read(started[0], &byte, 1), 1);
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  pollfd poll_end{ends[0], POLLIN, 0};
  ASSERT_EQ(::poll(&poll_end, 1, 10'000), 1) << "someone is left";
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
  ::close(started[0]);
}

TEST_F(RunAllTest, CountsWorkersOfOtherMachines) {
  plan_.min_workers = 2;
  plan_.workers_elsewhere = 2;
  plan_.inbox = std::make_shared<RunInbox>();
  AddWorker(kDaemon);
  const int code = Run("exec tail -f /dev/null", [&](const std::string& line) {
    if (line == "[worker1] ready") {
      plan_.inbox->Add({.event = "worker2 is lost", .lost = {"worker2"}});
      // Twice: it is one worker.
      plan_.inbox->Add({.event = "node is lost", .lost = {"worker2"}});
    } else if (line == "node is lost") {
      plan_.inbox->Add({.event = "worker3 is lost", .lost = {"worker3"}});
    }
  });
  EXPECT_EQ(code, 1);
  EXPECT_THAT(lines_, Contains("worker2 is lost; 2 of 3 workers are left"));
  EXPECT_THAT(lines_, Contains("worker3 is lost; 1 of 3 workers are left; "
                               "stopping the others"));
}

TEST_F(RunAllTest, WithoutATrainerEndsWhenItIsTold) {
  AddWorker(kPolite);
  plan_.inbox = std::make_shared<RunInbox>();
  plan_.print = [&](const std::string& line) {
    lines_.push_back(line);
    if (line == "[worker1] ready") plan_.inbox->Add({.ends = true, .code = 7});
  };
  const auto code = RunAll(plan_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 7);
  EXPECT_THAT(lines_, Contains("[worker1] bye"));
}

TEST_F(RunAllTest, WithoutATrainerTellsWhoIsLost) {
  AddWorker("exit 3");
  plan_.restarts = {.most = 1, .pause = std::chrono::milliseconds(50)};
  std::vector<std::string> lost;
  plan_.on_lost = [&](const std::string& name, const std::string&) {
    lost.push_back(name);
  };
  plan_.print = [](const std::string&) {};
  const auto code = RunAll(plan_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(lost, ::testing::ElementsAre("worker1"));
}

}  // namespace
}  // namespace baton::tools

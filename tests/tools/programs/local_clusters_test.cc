// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Clusters of others would be found, too, so that these have a place of their
// own.
class BatonctlHere : public ::testing::Test {
 protected:
  BatonctlHere() { setenv("TMPDIR", folder_.c_str(), 1); }
  ~BatonctlHere() override {
    old_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", old_.c_str(), 1);
  }
  const std::string old_ = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  const std::string folder_ = [] {
    std::string folder = "/tmp/baton_here_XXXXXX";
    return std::string(mkdtemp(folder.data()));
  }();
};

TEST_F(BatonctlHere, FindsWhatRunsOnThisMachine) {
  const Outcome none = RunProgram({"batonctl", "status"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output,
              HasSubstr("no worker of this user runs on this machine, by what "
                        "is in " +
                        folder_));
  const Outcome outcome = WithWorker("one", {}, [&](const std::string&) {
    const Outcome status = RunProgram({"batonctl", "status"});
    EXPECT_EQ(status.code, 0) << status.output;
    EXPECT_THAT(status.output, ContainsRegex("\na +0  cpu +idle"));
    EXPECT_EQ(RunProgram({"batonctl", "status", "--cluster=other"}).code, 1);
    const auto two = [&](const std::string&) {
      const Outcome several = RunProgram({"batonctl", "status"});
      EXPECT_EQ(several.code, 2) << several.output;
      EXPECT_THAT(several.output, HasSubstr("several clusters run here"));
      EXPECT_THAT(several.output, ContainsRegex("cluster of a .--worker=a="));
      EXPECT_EQ(RunProgram({"batonctl", "rrefs", "--cluster=other"}).code, 0);
    };
    EXPECT_EQ(WithWorker("two", {"--cluster=other"}, two).code, 0);
  });
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(RunProgram({"batonctl", "status"}).code, 1);
}

TEST_F(BatonctlHere, AWorkerThatDoesNotAnswerHidesNoOtherCluster) {
  const auto look = [](const std::string&) {
    const Outcome status =
        RunProgram({"batonctl", "status", "--timeout=500ms"});
    EXPECT_EQ(status.code, 0) << status.output;
    EXPECT_THAT(status.output, ContainsRegex("\na +0  cpu +idle"));
    const Outcome silent = RunProgram(
        {"batonctl", "status", "--cluster=silent", "--timeout=500ms"});
    EXPECT_EQ(silent.code, 1) << silent.output;
  };
  bool looked = false;
  const std::string place = absl::StrCat("s=unix:", folder_, "/silent");
  const auto stop = [&](const std::string& output, const Process& process) {
    if (looked || output.find("serving at") == std::string::npos) return;
    looked = true;
    SendSignal(process, SIGSTOP);
    EXPECT_EQ(WithWorker("one", {}, look).code, 0);
    SendSignal(process, SIGCONT);
    SendSignal(process, SIGTERM);
  };
  EXPECT_EQ(RunProgram({"baton-worker", "--name=s", "--peers=" + place,
                        "--cluster=silent", "--log=info"},
                       stop)
                .code,
            0);
  EXPECT_TRUE(looked);
}

}  // namespace
}  // namespace baton::tools

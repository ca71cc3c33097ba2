// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/live_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace baton::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Rows = std::vector<std::vector<std::string>>;

// A worker that has been up so long and has served so many calls.
WorkerReport Report(const std::string& name, int64_t uptime_ms,
                    uint64_t served) {
  WorkerReport report;
  report.worker.name = name;
  report.worker.incarnation = 7;
  report.info.uptime_ms = uptime_ms;
  report.info.calls_served = served;
  return report;
}

WorkerReport WithACall(WorkerReport report) {
  report.info.outgoing.push_back({.peer = "bob", .method = "Wait"});
  return report;
}

// As dist::StepCount tells them.
WorkerReport WithSteps(WorkerReport report, const std::string& count) {
  report.info.views.push_back({.name = "training",
                               .columns = {{"steps", rpc::View::Unit::kCount}},
                               .rows = {{count}}});
  return report;
}

class LiveTablesTest : public ::testing::Test {
 protected:
  void Look(std::vector<WorkerReport> reports) {
    tables_ = live_.Next("status", std::move(reports));
  }
  Rows RowsOf(const std::string& table) const {
    const auto found =
        std::find_if(tables_.begin(), tables_.end(),
                     [&](const rpc::View& view) { return view.name == table; });
    return found == tables_.end() ? Rows{{"no such table"}} : found->rows;
  }
  // Of the table "workers".
  std::string StateOf(const std::string& worker) const {
    for (const std::vector<std::string>& row : RowsOf("workers"))
      if (row[0] == worker) return row[3];
    return "not there";
  }

  LiveTables live_;
  std::vector<rpc::View> tables_;
};

TEST_F(LiveTablesTest, ShowWhatEachWorkerHasDoneASecond) {
  Look({Report("alice", 1000, 50)});
  EXPECT_THAT(RowsOf("a_second"), IsEmpty());
  Look({Report("alice", 3000, 60)});
  EXPECT_THAT(RowsOf("a_second"),
              ElementsAre(ElementsAre("alice", "", "5.0", "0", "0")));
}

TEST_F(LiveTablesTest, ShowStepsASecondOfThoseThatTrain) {
  Look({Report("alice", 1000, 0), Report("bob", 1000, 0)});
  Look({WithSteps(Report("alice", 3000, 0), "5"), Report("bob", 3000, 0)});
  EXPECT_THAT(RowsOf("a_second"),
              ElementsAre(ElementsAre("alice", "2.5", "0.0", "0", "0"),
                          ElementsAre("bob", "", "0.0", "0", "0")));
  Look({WithSteps(Report("alice", 4000, 0), "5"), Report("bob", 4000, 0)});
  EXPECT_THAT(RowsOf("a_second"),
              Contains(ElementsAre("alice", "0.0", "0.0", "0", "0")));
}

TEST_F(LiveTablesTest, AWorkerThatIsMissingIsGoneUntilItComesBack) {
  Look({Report("alice", 1000, 50), WithACall(Report("bob", 1000, 50))});
  EXPECT_EQ(StateOf("alice"), "idle");
  EXPECT_EQ(StateOf("bob"), "up");
  for (int64_t uptime_ms : {2000, 3000}) {
    Look({Report("alice", uptime_ms, 50)});
    EXPECT_EQ(StateOf("alice"), "idle");
    EXPECT_EQ(StateOf("bob"), "gone");
    EXPECT_THAT(RowsOf("workers").back(),
                Contains(HasSubstr("it has left the cluster")));
    // What it did then is under way no more.
    EXPECT_THAT(RowsOf("calls"), IsEmpty());
    EXPECT_THAT(RowsOf("a_second"),
                ElementsAre(ElementsAre("alice", "", "0.0", "0", "0")));
  }
  Look({Report("alice", 4000, 50), Report("bob", 5000, 90)});
  EXPECT_EQ(StateOf("bob"), "idle");
  EXPECT_THAT(RowsOf("a_second"),
              Contains(ElementsAre("bob", "", "10.0", "0", "0")));
}

TEST_F(LiveTablesTest, AWorkerThatDoesNotAnswerIsNotGone) {
  Look({Report("alice", 1000, 50)});
  WorkerReport silent = Report("alice", 0, 0);
  silent.status = absl::UnavailableError("cut off");
  Look({silent});
  EXPECT_EQ(StateOf("alice"), "no answer");
  Look({});
  EXPECT_EQ(StateOf("alice"), "gone");
}

}  // namespace
}  // namespace baton::tools

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/merged_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace baton::tools {
namespace {

using nlohmann::json;
using rpc::TraceEvent;

constexpr int64_t kMicro = 1'000, kMilli = 1'000'000;

// Workers whose clocks are set at random, which call each other. What is true
// is known by a clock of its own.
class Cluster {
 public:
  Cluster(int workers, uint32_t seed) : random_(seed) {
    for (int i = 0; i < workers; ++i) {
      ahead_.push_back(Draw(-3'600'000 * kMilli, 3'600'000 * kMilli));
      traces_.push_back(
          {.worker = {absl::StrCat("worker", i), rpc::Rank{i}, 1, ""}});
    }
  }

  int64_t Draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  void Call(size_t from, size_t to, int64_t begin, int64_t bytes = 100) {
    const uint64_t number = ++calls_[{from, to}];
    const int64_t sent = begin + Draw(0, 20 * kMicro);
    const int64_t came = sent + Draw(2 * kMicro, 300 * kMicro);
    const int64_t ran = came + Draw(0, 50 * kMicro);
    const int64_t left = ran + Draw(0, 2 * kMilli);
    const int64_t back = left + Draw(2 * kMicro, 300 * kMicro);
    const auto size = static_cast<uint64_t>(bytes);
    traces_[from].log.events.push_back(
        {TraceEvent::Kind::kCall, true, "F", traces_[to].worker.name, number,
         begin + ahead_[from], sent + ahead_[from], back + ahead_[from], size,
         size});
    traces_[to].log.events.push_back(
        {TraceEvent::Kind::kServe, true, "F", traces_[from].worker.name, number,
         came + ahead_[to], ran + ahead_[to], left + ahead_[to], size, size});
  }

  // As batonctl measures them: answered in 100 us and more, not evenly.
  void CompareClocks() {
    for (size_t i = 0; i < traces_.size(); ++i) {
      std::vector<ClockReading> samples;
      for (int k = 0; k < 20; ++k) {
        const int64_t asked = Draw(0, 1000 * kMilli);
        const int64_t read = asked + Draw(50 * kMicro, 900 * kMicro);
        const int64_t answered = read + Draw(50 * kMicro, 900 * kMicro);
        samples.push_back({asked, read + ahead_[i], answered});
      }
      traces_[i].clock = OffsetFrom(samples);
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> ahead_;
  std::vector<WorkerTrace> traces_;
  std::map<std::pair<size_t, size_t>, uint64_t> calls_;
};

struct Arrow {
  double sent = -1, came = -1;
};

std::map<int, Arrow> ArrowsOf(const json& trace) {
  std::map<int, Arrow> arrows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") arrows[event["id"]].sent = event["ts"];
    if (event["ph"] == "f") arrows[event["id"]].came = event["ts"];
  }
  return arrows;
}

TEST(ClockOffset, TheFastestAnswerCountsAndBoundsTheError) {
  const ClockOffset offset = OffsetFrom(
      {{0, 1'000'900, 2'000}, {5'000, 1'005'060, 5'100}, {0, 9, 900}});
  EXPECT_EQ(offset.ahead_ns, 1'000'010);
  EXPECT_EQ(offset.within_ns, 50);
  EXPECT_EQ(OffsetFrom({}).ahead_ns, 0);
}

TEST(ClockOffset, TheTruthLiesWithinTheBound) {
  Cluster cluster(20, 7);
  cluster.CompareClocks();
  for (size_t i = 0; i < cluster.traces_.size(); ++i) {
    const ClockOffset& clock = cluster.traces_[i].clock;
    EXPECT_LE(std::abs(clock.ahead_ns - cluster.ahead_[i]), clock.within_ns);
    EXPECT_LT(clock.within_ns, kMilli);
  }
}

TEST(MergedTrace, NoMessageArrivesBeforeItWasSent) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster(5, seed);
    for (int i = 0; i < 400; ++i) {
      const auto from = static_cast<size_t>(cluster.Draw(0, 4));
      const auto to = static_cast<size_t>(cluster.Draw(0, 4));
      cluster.Call(from, to, cluster.Draw(0, 500 * kMilli),
                   cluster.Draw(0, 10'000));
    }
    cluster.CompareClocks();
    CorrectByMessages(cluster.traces_);
    const json trace = json::parse(MergedTrace(cluster.traces_));
    const auto arrows = ArrowsOf(trace);
    ASSERT_EQ(arrows.size(), 800u);
    for (const auto& [id, arrow] : arrows) {
      EXPECT_GE(arrow.sent, 0) << id;
      EXPECT_LE(arrow.sent, arrow.came) << "arrow " << id << ", seed " << seed;
    }
    for (size_t i = 0; i < cluster.traces_.size(); ++i) {
      EXPECT_LT(std::abs(cluster.traces_[i].clock.ahead_ns - cluster.ahead_[i]),
                2 * kMilli);
    }
  }
}

TEST(MergedTrace, ShowsEachTrackApartAndWhatIsMissing) {
  Cluster cluster(2, 7);
  cluster.Call(0, 1, 0);
  rpc::TraceLog& log = cluster.traces_[1].log;
  log.notes = {"no work of GPUs: none is here"};
  constexpr int kTracks = 90;
  for (int i = 0; i < kTracks; ++i) {
    log.events.push_back({.name = "kernel",
                          .peer = absl::StrCat("cuda:0 stream ", i),
                          .begin_ns = 0,
                          .end_ns = kMilli,
                          .request_bytes = 64});
  }
  const json trace = json::parse(MergedTrace(cluster.traces_));
  std::set<int> rows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["pid"] == 2) {
      EXPECT_TRUE(rows.insert(event["tid"].get<int>()).second);
    }
    if (event["name"] == "kernel") {
      EXPECT_EQ(event["args"]["bytes"], 64);
    }
  }
  EXPECT_EQ(rows.size(), size_t{kTracks} + 1);  // and the call served
  const std::string worker = cluster.traces_[1].worker.name;
  EXPECT_EQ(trace["otherData"][worker]["notes"],
            json::array({"no work of GPUs: none is here"}));
}

TEST(MergedTrace, EstimatesThatAgreeWithAllMessagesStay) {
  Cluster cluster(2, 3);
  cluster.Call(0, 1, 0);
  for (size_t i = 0; i < 2; ++i)
    cluster.traces_[i].clock.ahead_ns = cluster.ahead_[i] + 1;
  CorrectByMessages(cluster.traces_);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(cluster.traces_[i].clock.ahead_ns, cluster.ahead_[i] + 1);
}

TEST(MergedTrace, SlicesOfARowDoNotOverlap) {
  Cluster cluster(3, 5);
  for (int i = 0; i < 300; ++i) {
    cluster.Call(static_cast<size_t>(cluster.Draw(0, 2)),
                 static_cast<size_t>(cluster.Draw(0, 2)),
                 cluster.Draw(0, 20 * kMilli), 8'000);
  }
  cluster.CompareClocks();
  CorrectByMessages(cluster.traces_);
  const json trace = json::parse(MergedTrace(cluster.traces_));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  size_t messages = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    messages += event["cat"] == "message";
    const double begin = event["ts"];
    EXPECT_GE(event["dur"], 0);
    rows[{event["pid"], event["tid"]}].emplace_back(
        begin, begin + event["dur"].get<double>());
  }
  EXPECT_EQ(messages, 600u);
  for (auto& [row, slices] : rows) {
    std::sort(slices.begin(), slices.end());
    for (size_t i = 1; i < slices.size(); ++i)
      EXPECT_LE(slices[i - 1].second, slices[i].first + 1e-3);
  }
}

TEST(MergedTrace, ArrowsBeginAndEndOnSlices) {
  Cluster cluster(2, 9);
  for (int i = 0; i < 50; ++i) cluster.Call(0, 1, cluster.Draw(0, 5 * kMilli));
  cluster.CompareClocks();
  CorrectByMessages(cluster.traces_);
  const json trace = json::parse(MergedTrace(cluster.traces_));
  for (const json& arrow : trace["traceEvents"]) {
    if (arrow["ph"] != "s" && arrow["ph"] != "f") continue;
    const bool lands = std::any_of(
        trace["traceEvents"].begin(), trace["traceEvents"].end(),
        [&](const json& slice) {
          if (slice["ph"] != "X" || slice["pid"] != arrow["pid"] ||
              slice["tid"] != arrow["tid"]) {
            return false;
          }
          const double begin = slice["ts"], at = arrow["ts"];
          return begin <= at && at <= begin + slice["dur"].get<double>() + 1e-3;
        });
    EXPECT_TRUE(lands) << arrow;
  }
}

TEST(MergedTrace, SpansHaveTracksAndFailedCallsNoAnswer) {
  WorkerTrace bob{.worker = {"bob", rpc::Rank{1}, 1, ""}};
  bob.log.events.push_back({TraceEvent::Kind::kSpan, true, "forward 0",
                            "stage 1", 0, 1'000, 0, 3'000});
  WorkerTrace alice{.worker = {"alice", rpc::Rank{0}, 1, ""}};
  alice.log.events.push_back({TraceEvent::Kind::kCall, false, "F", "bob", 1,
                              1'000, 1'500, 2'000, 100, 0});
  bob.log.events.push_back({TraceEvent::Kind::kServe, true, "F", "alice", 1,
                            1'600, 1'700, 9'000, 100, 100});
  const json trace = json::parse(MergedTrace({alice, bob}));
  EXPECT_EQ(ArrowsOf(trace).size(), 1u);  // the caller had given up
  const auto has = [&](const char* phase, const char* name) {
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == phase &&
          (event["name"] == name ||
           (event.contains("args") && event["args"].value("name", "") == name)))
        return true;
    }
    return false;
  };
  EXPECT_TRUE(has("X", "forward 0"));
  EXPECT_TRUE(has("M", "stage 1"));
  EXPECT_TRUE(has("M", "alice"));
  EXPECT_TRUE(has("M", "bob"));
}

TEST(MergedTrace, NothingIsAValidTraceToo) {
  EXPECT_TRUE(json::parse(MergedTrace({}))["traceEvents"].empty());
}

}  // namespace
}  // namespace baton::tools

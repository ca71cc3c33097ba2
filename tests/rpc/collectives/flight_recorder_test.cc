// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/flight_recorder.h"

#include <gtest/gtest.h>

namespace baton::rpc {
namespace {

using State = FlightRecord::State;

const Collective kReduction{.kind = CollectiveKind::kAllReduce, .count = 8};
const Collective kBarrier{};
const Collective kSend{.kind = CollectiveKind::kSend, .count = 8, .root = 0};

TEST(FlightRecorder, KeepsTheLastOnesAndAllThatHaveNotEnded) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.Begin(kBarrier), 1u);
  for (size_t i = 0; i < FlightRecorder::kKept + 5; ++i)
    recorder.Begin(kReduction);
  EXPECT_EQ(recorder.Records().size(), FlightRecorder::kKept + 6);
  for (uint64_t i = 1; i <= 3; ++i) recorder.Set(i, State::kDone);
  for (int i = 0; i < 5; ++i) recorder.Begin(kReduction);
  const auto records = recorder.Records();
  EXPECT_EQ(records.front().sequence, 4u);
  EXPECT_EQ(records.back().sequence, FlightRecorder::kKept + 11);
  EXPECT_EQ(records.front().ToString(), "#4 all_reduce sum f32[8], queued");
}

// Sends and receives end in any order.
TEST(FlightRecorder, ForgetsThoseThatEndedBehindOneThatHasNot) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.Begin(kSend), 1u);
  for (size_t i = 0; i < 3 * FlightRecorder::kKept; ++i)
    recorder.Set(recorder.Begin(kSend), State::kDone);
  const auto records = recorder.Records();
  ASSERT_EQ(records.size(), FlightRecorder::kKept);
  EXPECT_EQ(records[0].sequence, 1u);
  EXPECT_EQ(records.back().sequence, 3 * FlightRecorder::kKept + 1);
}

TEST(Collective, ListsTheSizesOfSeveralTensors) {
  Collective several = kReduction;
  several.sizes = {5, 3};
  EXPECT_EQ(several.ToString(), "all_reduce sum f32[5 + 3]");
  several.sizes = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(several.ToString(),
            "all_reduce sum f32[1 + 2 + 3 + 4] and 2 more, 21 together");
}

TEST(CompareFlights, NamesEachMemberThatDoesNotTakePart) {
  const std::vector<MemberFlight> members = {
      {"rank 0 (a)",
       {{{1, kBarrier, State::kDone}, {2, kReduction, State::kRunning}}}},
      {"rank 1 (b)", {{{1, kBarrier, State::kDone}}}},
      {"rank 2 (c)",
       {{{1, kBarrier, State::kDone}, {2, kBarrier, State::kRunning}}}},
      {"rank 3 (d)", std::nullopt},
      {"rank 4 (e)", std::vector<FlightRecord>{}},
      {"rank 5 (f)",
       {{{2, kReduction, State::kDone}, {3, kBarrier, State::kQueued}}}},
      {"rank 6 (g)",  // a send is no collective
       {{{1, kBarrier, State::kDone}, {2, kSend, State::kRunning}}}}};
  EXPECT_EQ(CompareFlights(kReduction, 2, members),
            "rank 1 (b) has not begun it, its last is #1 barrier, done; "
            "rank 2 (c) does #2 barrier, running; rank 3 (d) does not answer; "
            "rank 4 (e) has begun nothing yet; "
            "rank 6 (g) has not begun it, its last is #1 barrier, done");
}

TEST(CompareFlights, SaysNothingWhereAllDoTheSame) {
  const std::vector<FlightRecord> records = {{1, kReduction, State::kRunning}};
  EXPECT_EQ(CompareFlights(kReduction, 1,
                           {{"rank 0 (a)", records}, {"rank 1 (b)", records}}),
            "");
}

}  // namespace
}  // namespace baton::rpc

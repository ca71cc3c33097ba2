// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "tests/rpc/collectives/groups.h"
#include "tests/support/kills.h"
#include "tests/support/member_processes.h"

// A replica that is killed while it trains, of processes of their own.
namespace baton::testing {
namespace {

class KilledReplica : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledReplica, IsNamedToTheOthersWhoTrainOn) {
  const int count = MembersHere(3);
  std::mt19937 random(7);
  for (int i = 0; i < Kills(3); ++i) {
    MemberProcesses members(count, "replica_member", {GetParam()});
    // Any phase of a step may be the one: some take less than a millisecond.
    const auto end = MemberProcesses::Clock::now() +
                     std::chrono::microseconds(random() % 5000);
    while (MemberProcesses::Clock::now() < end) std::this_thread::yield();
    members.KillAndExpectTheRestToGoOn(i % count);
  }
}

INSTANTIATE_TEST_SUITE_P(Which, KilledReplica,
                         ::testing::Values("plain", "zero", "join", "norms"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace baton::testing

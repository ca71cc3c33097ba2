// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <string>

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
    members.KillAndExpectTheRestToGoOn(i % count, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Which, KilledReplica,
                         ::testing::Values("plain", "zero", "join", "norms"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace baton::testing

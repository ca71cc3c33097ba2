// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/rpc/collectives/groups.h"
#include "tests/support/kills.h"
#include "tests/support/member_processes.h"

// A member that is killed in a collective, of processes of their own.
namespace baton::testing {
namespace {

class KilledMember
    : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(KilledMember, IsNamedToAllOthersWhoGoOnWithTheRightMean) {
  const auto& [kind, killed] = GetParam();
  std::mt19937 random(7);
  for (int i = 0; i < Kills(1) && !HasFailure(); ++i) {
    MemberProcesses members(MembersHere(3), "group_member", {kind});
    members.KillAndExpectTheRestToGoOn(killed, random);
  }
}

// Rank 0 is the root, and the others meet at it.
INSTANTIATE_TEST_SUITE_P(
    InA, KilledMember,
    ::testing::Combine(::testing::Values("all_reduce", "broadcast", "reduce",
                                         "all_gather", "reduce_scatter",
                                         "gather", "scatter", "all_to_all",
                                         "barrier", "all_reduce_many",
                                         "broadcast_many", "send_receive"),
                       ::testing::Values(0, 1)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_loses_",
                          std::get<1>(info.param));
    });

// Its connections stay, so that its silence alone tells, when the lease of two
// seconds has passed.
TEST(StoppedMember, IsNamedToAllOthersByItsLease) {
  MemberProcesses members(MembersHere(3), "group_member", {"all_reduce"});
  members.SignalAndExpectTheRestToGoOn(1, SIGSTOP, std::chrono::seconds(6));
}

}  // namespace
}  // namespace baton::testing

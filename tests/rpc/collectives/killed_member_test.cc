// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>

#include "tests/rpc/collectives/groups.h"
#include "tests/support/member_processes.h"

// A member that is killed in a collective, of processes of their own.
namespace baton::testing {
namespace {

class KilledMember : public ::testing::TestWithParam<std::string> {
 protected:
  MemberProcesses members_{MembersHere(3), "group_member", {GetParam()}};
};

TEST_P(KilledMember, IsNamedToAllOthersWhoGoOnWithTheRightMean) {
  members_.KillAndExpectTheRestToGoOn(1);
}

INSTANTIATE_TEST_SUITE_P(InA, KilledMember,
                         ::testing::Values("all_reduce", "broadcast", "reduce",
                                           "all_gather", "reduce_scatter",
                                           "gather", "scatter", "all_to_all",
                                           "barrier"),
                         [](const auto& info) { return info.param; });

// Where the members of a group meet.
class KilledFirstMember : public KilledMember {};

TEST_P(KilledFirstMember, LeavesOthersThatMeetElsewhere) {
  members_.KillAndExpectTheRestToGoOn(0);
}

INSTANTIATE_TEST_SUITE_P(InA, KilledFirstMember,
                         ::testing::Values("all_reduce"));

}  // namespace
}  // namespace baton::testing

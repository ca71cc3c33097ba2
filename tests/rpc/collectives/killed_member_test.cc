// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/rpc/collectives/groups.h"
#include "tests/support/member_processes.h"

// A member that is killed in a collective, of processes of their own.
namespace baton::testing {
namespace {

class KilledMember
    : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  MemberProcesses members_{
      MembersHere(3), "group_member", {std::get<0>(GetParam())}};
};

TEST_P(KilledMember, IsNamedToAllOthersWhoGoOnWithTheRightMean) {
  members_.KillAndExpectTheRestToGoOn(std::get<1>(GetParam()));
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

}  // namespace
}  // namespace baton::testing

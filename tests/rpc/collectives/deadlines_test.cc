// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/rpc/collectives/calls_of_kinds.h"
#include "tests/rpc/collectives/groups.h"

// Every call ends by its own deadline.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;

class MissedCall
    : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  const std::string kind_ = std::get<0>(GetParam());
  const bool shared_memory_ = std::get<1>(GetParam());
  const Groups groups_{
      2, {.name = "", .shared_memory = shared_memory_}, /*timeout=*/1h};
  // Rank 1 makes the calls and needs rank 0, which never comes.
  const int root_ = kind_ == "reduce" || kind_ == "gather" ? 1 : 0;
  const CallsOfKinds calls_{*groups_[1], 1000, Device::Cpu(), root_};
};

TEST_P(MissedCall, EndsByItsDeadline) {
  EXPECT_THAT(calls_.Call(kind_, {.timeout = 200ms}).Await(10s),
              Fails(StatusCode::kDeadlineExceeded, "rank 0 (w0)"));
}

TEST_P(MissedCall, EndsByItsDeadlineBehindOneWithALaterOne) {
  const auto first = groups_[1]->Barrier();
  const auto second = calls_.Call(kind_, {.timeout = 200ms});
  EXPECT_THAT(second.Await(10s),
              Fails(StatusCode::kDeadlineExceeded, "rank 0 (w0)"));
  EXPECT_THAT(second.Await(10s), Fails(StatusCode::kDeadlineExceeded, kind_));
  // A late call breaks the group.
  EXPECT_THAT(first.Await(10s), Fails(StatusCode::kDeadlineExceeded, kind_));
}

INSTANTIATE_TEST_SUITE_P(
    Every, MissedCall,
    ::testing::Combine(::testing::Values("all_reduce", "broadcast", "reduce",
                                         "all_gather", "reduce_scatter",
                                         "gather", "scatter", "all_to_all",
                                         "barrier", "send", "receive"),
                       ::testing::Bool()),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param),
                          std::get<1>(info.param) ? "_Shared" : "_Messages");
    });

// As long as nobody is late, the deadlines of calls need not be in order.
TEST(Deadlines, EarlierOnesBehindLaterOnesAreMet) {
  const Groups groups(2, {.name = "Shared"});
  groups.ExpectEach([](size_t, rpc::ProcessGroup& group) {
    group.Barrier({.timeout = 1h}).OnReady([](const absl::Status&) {});
    return group.Barrier({.timeout = 20s});
  });
  groups.ExpectEach(
      [](size_t, rpc::ProcessGroup& group) { return group.Barrier(); });
}

}  // namespace
}  // namespace baton::testing

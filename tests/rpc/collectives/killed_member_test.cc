// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

// A member that is killed in a collective, of processes of their own.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class KilledMember : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kMembers = 3;

  KilledMember() {
    for (int i = 0; i < kMembers; ++i) {
      members_.push_back(
          std::make_unique<ChildProcess>(std::vector<std::string>{
              ProgramPath("group_member"), absl::StrCat("w", i),
              server_->address(), absl::StrCat(kMembers), GetParam(),
              absl::StrCat(1 << i)}));
    }
    for (auto& member : members_) EXPECT_EQ(member->ReadLine(), "running");
  }
  std::string Next(int i) {
    return members_[static_cast<size_t>(i)]
        ->ReadLine(Clock::now() + 30s)
        .value_or("nothing");
  }

  const std::unique_ptr<rpc::RendezvousServer> server_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::vector<std::unique_ptr<ChildProcess>> members_;
};

TEST_P(KilledMember, IsNamedToAllOthersWhoGoOnWithTheRightMean) {
  const int killed = 1;
  const auto start = Clock::now();
  members_[killed]->Kill(SIGKILL);
  for (const int i : {0, 2}) {
    const std::string line = Next(i);
    EXPECT_LT(Clock::now() - start, 2s);
    EXPECT_EQ(line.rfind("broken UNAVAILABLE", 0), 0u) << line;
    EXPECT_NE(line.find("w1"), std::string::npos) << line;
  }
  for (const int i : {0, 2}) EXPECT_EQ(Next(i), "mean 2.5 of 2") << i;
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
  members_[0]->Kill(SIGKILL);
  for (const int i : {1, 2}) {
    const std::string line = Next(i);
    EXPECT_EQ(line.rfind("broken UNAVAILABLE", 0), 0u) << line;
    EXPECT_NE(line.find("w0"), std::string::npos) << line;
  }
  for (const int i : {1, 2}) EXPECT_EQ(Next(i), "mean 3 of 2") << i;
}

INSTANTIATE_TEST_SUITE_P(InA, KilledFirstMember,
                         ::testing::Values("all_reduce"));

}  // namespace
}  // namespace baton::testing

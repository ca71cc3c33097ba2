// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Members of an elastic run that are processes of their own: killed, stopped,
// started and asked to leave while they train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rpc/rendezvous.h"
#include "tests/support/child_process.h"
#include "tests/support/kills.h"
#include "tests/support/program_path.h"

namespace baton::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kStepsOfAnEpoch = 3;
// Members that have met at the rendezvous find each other well within these.
constexpr int kEpochs = 300;

// Confined to one thread.
class Members {
 public:
  // They train for so many epochs, and then until there are `last` of them; not
  // while there are fewer than `least`.
  Members(int first, int epochs, int last, int least = 1)
      : epochs_(epochs), last_(last), least_(least) {
    for (int i = 0; i < first; ++i) Start(absl::StrCat("w", i), first);
  }
  void Start(const std::string& name, int world_size = rpc::kOneMore) {
    members_[name] = std::make_unique<ChildProcess>(std::vector<std::string>{
        ProgramPath("elastic_member"), name, server_->address(),
        absl::StrCat(world_size), absl::StrCat(epochs_), absl::StrCat(last_),
        absl::StrCat(least_)});
  }
  ChildProcess& operator[](const std::string& name) {
    return *members_.at(name);
  }
  void Kill(const std::string& name) {
    members_.at(name)->Kill(SIGKILL);
    members_.erase(name);
  }
  // A line of this member's that begins so; all others are passed over.
  std::string Await(const std::string& name, const std::string& words) {
    const auto deadline = Clock::now() + seconds(60);
    for (;;) {
      const std::string line =
          members_.at(name)->ReadLine(deadline).value_or("nothing");
      if (absl::StartsWith(line, words)) return line;
      if (absl::StartsWith(line, "step ")) continue;
      ADD_FAILURE() << name << " says: " << line;
      return line;
    }
  }
  // So many members, as this one sees it. It may have seen as many while they
  // joined: await all of them first.
  void AwaitMembers(const std::string& name, int members) {
    const std::string wanted = absl::StrCat(" of ", members);
    while (!absl::EndsWith(Await(name, "step "), wanted)) {
      if (::testing::Test::HasFailure()) return;
    }
  }
  // All say the same: each sample counted once an epoch, and momentum is that
  // of as many steps as they took.
  void ExpectEachSampleOnceAnEpoch() {
    std::string first;
    for (const auto& [name, member] : members_) {
      const std::string line = Await(name, "seen ");
      if (first.empty()) first = line;
      EXPECT_EQ(line, first) << name;
    }
    const std::vector<std::string> words = absl::StrSplit(first, ' ');
    ASSERT_EQ(words.size(), 13u) << first;
    EXPECT_EQ(words[1], words[6]) << first;  // least
    EXPECT_EQ(words[3], words[6]) << first;  // most
    int epochs = 0, steps = 0;
    double momentum = 0;
    ASSERT_TRUE(absl::SimpleAtoi(words[6], &epochs)) << first;
    ASSERT_TRUE(absl::SimpleAtod(words[9], &momentum)) << first;
    ASSERT_TRUE(absl::SimpleAtoi(words[11], &steps)) << first;
    EXPECT_EQ(steps, epochs * kStepsOfAnEpoch);
    EXPECT_NEAR(momentum, 2.0 * steps - 2, 0.05) << first;
  }

 private:
  const int epochs_, last_, least_;
  const std::unique_ptr<rpc::RendezvousServer> server_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::map<std::string, std::unique_ptr<ChildProcess>> members_;
};

TEST(KilledElasticMember, LosesNoSampleAndNoneCountsTwice) {
  std::mt19937 random(11);
  for (int i = 0; i < Kills(4); ++i) {
    const std::string killed = absl::StrCat("w", i % 3);
    Members members(3, kEpochs, 2);
    members.AwaitMembers(killed, 3);
    // Any phase of a step may be the one.
    const auto end =
        Clock::now() + std::chrono::microseconds(random() % 20'000);
    while (Clock::now() < end) std::this_thread::yield();
    members.Kill(killed);
    members.ExpectEachSampleOnceAnEpoch();
  }
}

TEST(KilledElasticMember, IsFollowedByNewcomersWhoTakeItsState) {
  for (int i = 0; i < Kills(2); ++i) {
    const std::string killed = absl::StrCat("w", i % 3);
    const std::string other = absl::StrCat("w", (i + 1) % 3);
    Members members(3, kEpochs, 4);
    members.AwaitMembers(other, 3);
    members.Kill(killed);
    members.AwaitMembers(other, 2);
    members.Start(killed, 3);  // in its place
    members.AwaitMembers(other, 3);
    members.Start("extra");
    members.AwaitMembers("extra", 4);
    members.ExpectEachSampleOnceAnEpoch();
  }
}

TEST(KilledElasticMember, MayBeAllButOneOneAfterTheOther) {
  Members members(4, kEpochs, 1);
  for (int left = 4; left > 1; --left) {
    members.AwaitMembers("w3", left);
    members.Kill(absl::StrCat("w", 4 - left));
  }
  members.ExpectEachSampleOnceAnEpoch();
}

// Those that were left are a majority, so the one that wakes up is none.
TEST(StoppedElasticMember, TakesNoStepAfterOthersHaveGivenItUp) {
  Members members(3, kEpochs, 2, 2);
  members.AwaitMembers("w0", 3);
  members["w1"].Kill(SIGSTOP);
  members.AwaitMembers("w0", 2);
  members["w1"].Kill(SIGCONT);
  // It lacks members, or waits for one that has gone on without it.
  EXPECT_THAT(members.Await("w1", "DEADLINE_EXCEEDED: "),
              AnyOf(HasSubstr("elastic run elastic has 1 members and needs 2"),
                    HasSubstr("members of a group that have not come: w")));
  members.Kill("w1");
  members.ExpectEachSampleOnceAnEpoch();
}

TEST(ElasticMember, LeavesInOrder) {
  Members members(3, kEpochs, 2);
  members.AwaitMembers("w1", 3);
  members["w0"].Kill(SIGTERM);
  members.AwaitMembers("w1", 2);
  EXPECT_EQ(members["w0"].Wait(Clock::now() + seconds(30)).value_or(-1), 0);
  members.Kill("w0");  // it has ended: its lines are not looked at
  members.ExpectEachSampleOnceAnEpoch();
}

}  // namespace
}  // namespace baton::testing

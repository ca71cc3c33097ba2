// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/agent.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

// Who comes, goes and dies, as a worker sees it that stays.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::MemberEvent;
using Kind = MemberEvent::Kind;
using ::testing::ElementsAre;

// A daemon, and trainers that it hears of by what they say to it.
class MembersTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  std::unique_ptr<rpc::Agent> Start(const std::string& name, int rank,
                                    std::vector<rpc::WorkerInfo> peers) {
    rpc::Registry registry;
    FillCounter(registry);
    auto transport = maker_->Make(registry);
    rpc::AgentOptions options;
    options.self = {name, rpc::Rank{rank}, next_incarnation_++,
                    transport->address()};
    options.peers = std::move(peers);
    options.worker_threads = 1;
    options.lease = 200ms;
    options.resend_after = 30ms;
    auto agent = rpc::Agent::Start(std::move(options), std::move(registry),
                                   std::move(transport));
    EXPECT_THAT(agent, IsOk());
    return *std::move(agent);
  }
  std::unique_ptr<rpc::Agent> StartTrainer(const std::string& name,
                                           int rank = 1) {
    return Start(name, rank, {daemon_->self()});
  }
  // Does what leaves traces in the daemon's tables.
  void Work(rpc::Agent& trainer) {
    auto counter = rpc::Create<Counter>(trainer, "daemon", 1).Await(10s);
    ASSERT_THAT(counter, IsOk());
    EXPECT_EQ(*counter->Async<&Counter::Add>(1).Await(10s), 2);
    EXPECT_EQ(*daemon_->Async<&Sum>(trainer.self().name, 1, 2).Await(10s), 3);
  }
  // Entries of its tables, by kind.
  std::vector<size_t> Tables() {
    const rpc::DebugInfo info = daemon_->GetDebugInfo();
    return {daemon_->workers().size(),
            info.peers.size(),
            info.channels.size(),
            info.tensor_channels.size(),
            info.methods.size(),
            info.objects.size(),
            info.incoming.size() + info.outgoing.size()};
  }
  void Watch() {
    daemon_->WatchMembers([this](const MemberEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event);
    });
  }
  std::vector<std::pair<Kind, std::string>> Events() {
    MutexLock lock(mutex_);
    std::vector<std::pair<Kind, std::string>> events;
    for (const MemberEvent& event : events_) {
      events.emplace_back(event.kind, event.worker.name);
    }
    return events;
  }
  absl::Status CauseOf(size_t event) {
    MutexLock lock(mutex_);
    return events_.at(event).cause;
  }

  std::unique_ptr<TransportMaker> maker_ = MakerOf(GetParam())();
  uint64_t next_incarnation_ = 1;
  Mutex mutex_;
  std::vector<MemberEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Agent> daemon_ = Start("daemon", 0, {});
};
INSTANTIATE_TEST_SUITE_P(Over, MembersTest, kTransports, TransportName);

TEST_P(MembersTest, ADaemonHoldsAfterManyTrainersWhatItHeldAfterTheFirst) {
  const int trainers = GetParam() == TransportKind::kInProcess ? 1000 : 60;
  std::vector<size_t> after_first;
  for (int i = 0; i < trainers; ++i) {
    auto trainer = StartTrainer(absl::StrCat("trainer", i));
    Work(*trainer);
    if (HasFatalFailure()) return;
    // Of three, one dies.
    if (i % 3 != 2) {
      ASSERT_THAT(trainer->Shutdown({.timeout = 10s}), IsOk());
    }
    trainer.reset();
    if (i > 0) continue;
    ASSERT_TRUE(Within(10s, [&] { return daemon_->workers().size() == 1; }));
    after_first = Tables();
  }
  EXPECT_TRUE(Within(10s, [&] { return Tables() == after_first; }))
      << daemon_->GetDebugInfo().ToString();
}

TEST_P(MembersTest, ARankIsThatOfTheLivingWorker) {
  auto bob = StartTrainer("bob");
  Work(*bob);
  EXPECT_EQ(daemon_->Find(rpc::Rank{1})->name, "bob");
  bob.reset();
  auto dave = StartTrainer("dave");
  Work(*dave);
  EXPECT_EQ(*daemon_->Async<&Sum>(rpc::Rank{1}, 1, 2).Await(10s), 3);
  EXPECT_EQ(daemon_->Find(rpc::Rank{1})->name, "dave");
  EXPECT_TRUE(Within(10s, [&] { return daemon_->workers().size() == 2; }));
  EXPECT_EQ(daemon_->Find(rpc::Rank{1})->name, "dave");
}

TEST_P(MembersTest, OneThatDiedIsNamedWithTheCause) {
  auto bob = StartTrainer("bob");
  Work(*bob);
  bob.reset();
  ASSERT_TRUE(Within(10s, [&] { return daemon_->workers().size() == 1; }));
  for (const rpc::Target& target :
       {rpc::Target("bob"), rpc::Target(rpc::Rank{1})}) {
    EXPECT_THAT(daemon_->Async<&Sum>(target, 1, 2).Await(10s),
                Fails(StatusCode::kUnavailable,
                      "worker bob is not there any more: lost the connection"));
  }
  EXPECT_THAT(daemon_->Async<&Sum>("carol", 1, 2).Await(10s),
              Fails(StatusCode::kNotFound, "there are: daemon"));
}

TEST_P(MembersTest, EventsTellWhoJoinedAndLeft) {
  Watch();
  auto bob = StartTrainer("bob");
  Work(*bob);
  ASSERT_THAT(bob->Shutdown({.timeout = 10s}), IsOk());
  ASSERT_TRUE(Within(10s, [&] { return Events().size() >= 2; }));
  EXPECT_THAT(Events(), ElementsAre(std::pair(Kind::kJoined, "bob"),
                                    std::pair(Kind::kLeft, "bob")));
  EXPECT_THAT(CauseOf(0), IsOk());
  EXPECT_EQ(daemon_->workers().size(), 1u);
}

TEST_P(MembersTest, EventsTellWhoIsLostAndWhy) {
  Watch();
  auto bob = StartTrainer("bob");
  Work(*bob);
  bob.reset();
  ASSERT_TRUE(Within(10s, [&] { return Events().size() >= 3; }));
  EXPECT_THAT(Events(), ElementsAre(std::pair(Kind::kJoined, "bob"),
                                    std::pair(Kind::kBroken, "bob"),
                                    std::pair(Kind::kLost, "bob")));
  EXPECT_THAT(CauseOf(2), Fails(StatusCode::kUnavailable, "worker bob"));
  EXPECT_EQ(daemon_->workers().size(), 1u);
}

TEST_P(MembersTest, EventsTellOfASuccessorAfterItsPredecessor) {
  Watch();
  auto bob = StartTrainer("bob");
  Work(*bob);
  daemon_->AddPeer({"bob", rpc::Rank{1}, 99, bob->self().address});
  ASSERT_TRUE(Within(10s, [&] { return Events().size() >= 3; }));
  const auto events = Events();
  EXPECT_EQ(events.front(), std::pair(Kind::kJoined, std::string("bob")));
  EXPECT_EQ(events.back(), std::pair(Kind::kJoined, std::string("bob")));
  EXPECT_EQ(events[events.size() - 2],
            std::pair(Kind::kLost, std::string("bob")));
  EXPECT_THAT(CauseOf(events.size() - 2),
              Fails(StatusCode::kUnavailable, "was started again"));
}

TEST_P(MembersTest, OneThatIsTakenBackIsThere) {
  auto carol = StartTrainer("carol", 2);
  for (int i = 0; i < 100; ++i) {
    daemon_->AddPeer(carol->self());
    ASSERT_EQ(daemon_->workers().size(), 2u);
    daemon_->StrikeOff({Kind::kLost, carol->self(),
                        absl::UnavailableError("not heard for its lease")});
    ASSERT_EQ(daemon_->workers().size(), 1u);
  }
  daemon_->AddPeer(carol->self());
  EXPECT_EQ(*daemon_->Async<&Sum>(rpc::Rank{2}, 1, 2).Await(10s), 3);
}

TEST_P(MembersTest, OneThatIsStruckOffIsForgottenOnceItsConnectionEnds) {
  auto bob = StartTrainer("bob");
  auto carol = StartTrainer("carol", 2);
  Work(*bob);
  daemon_->AddPeer(carol->self());
  for (const auto* agent : {bob.get(), carol.get()}) {
    daemon_->StrikeOff({Kind::kLost, agent->self(),
                        absl::UnavailableError("not heard for its lease")});
  }
  // Carol was never connected.
  ASSERT_TRUE(Within(10s, [&] { return daemon_->workers().size() == 2; }));
  EXPECT_THAT(daemon_->Async<&Sum>("carol", 1, 2).Await(10s),
              Fails(StatusCode::kUnavailable, "not heard for its lease"));
  EXPECT_EQ(*daemon_->Async<&Sum>("bob", 1, 2).Await(10s), 3);
  bob.reset();
  EXPECT_TRUE(Within(10s, [&] { return daemon_->workers().size() == 1; }));
  // Whoever speaks is there again, once it has heard that it was given up.
  EXPECT_THAT(carol->Async<&Sum>("daemon", 1, 2).Await(10s),
              Fails(StatusCode::kUnavailable, "has given up worker carol"));
  EXPECT_EQ(*carol->Async<&Sum>("daemon", 1, 2).Await(10s), 3);
  EXPECT_EQ(*daemon_->Async<&Sum>("carol", 1, 2).Await(10s), 3);
}

}  // namespace
}  // namespace baton::testing

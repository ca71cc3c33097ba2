// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/log.h"
#include "rpc/agent.h"
#include "rpc/spares.h"
#include "tests/rpc/counter.h"
#include "tests/rpc/heard.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;

// What carol borrows.
RRef<Counter> borrowed;
int Borrow(RRef<Counter> counter) {
  borrowed = std::move(counter);
  return 0;
}

absl::StatusOr<std::unique_ptr<Counter>> MakeCounter(int start) {
  return Counter::Make(start);
}

void FillForLostOwners(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&MakeCounter>();
  registry.AddFunction<&Borrow>();
}

// Bob, who owns what alice makes, is lost.
class OwnerLostTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ~OwnerLostTest() override {
    borrowed = {};
    cluster_.ExpectIdle();
    EXPECT_TRUE(Counter::AllGone());
  }
  RRef<Counter> MakeAt(const std::string& worker) {
    auto made = rpc::Create<Counter>(alice_, worker, 1).Await(5s);
    EXPECT_THAT(made, IsOk());
    return made.ok() ? *made : RRef<Counter>();
  }

  LocalCluster cluster_{{.names = {"alice", "bob", "carol", "spare1"},
                         .fill = &FillForLostOwners,
                         .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
};
INSTANTIATE_TEST_SUITE_P(Over, OwnerLostTest, kTransports, TransportName);

TEST_P(OwnerLostTest, WhoMadeAnObjectHearsOnceThatItsWorkerDied) {
  const auto counter = MakeAt("bob");
  const auto other = MakeAt("bob");
  const auto elsewhere = MakeAt("carol");
  const HeardPtr first = Listen(counter);
  const HeardPtr second = Listen(counter);
  const HeardPtr of_other = Listen(other);
  const HeardPtr of_elsewhere = Listen(elsewhere);
  cluster_.Kill("bob");
  for (const HeardPtr* heard : {&first, &second, &of_other}) {
    ExpectOnce(*heard, "worker bob and what it had is lost");
  }
  EXPECT_EQ(of_elsewhere->times, 0);
}

TEST_P(OwnerLostTest, WhoAsksAfterTheLossHearsAtOnce) {
  const auto counter = MakeAt("bob");
  cluster_.Kill("bob");
  ExpectOnce(Listen(counter), "bob");
  ExpectOnce(Listen(counter), "bob");
}

TEST_P(OwnerLostTest, AWorkerThatLeavesOrIsRemovedIsLost) {
  const auto at_bob = MakeAt("bob");
  const auto at_carol = MakeAt("carol");
  const HeardPtr left = Listen(at_bob);
  const HeardPtr removed = Listen(at_carol);
  cluster_["bob"]
      .Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow})
      .IgnoreError();
  alice_.RemovePeer("carol");
  ExpectOnce(left, "bob");
  ExpectOnce(removed, "worker carol was removed");
}

TEST_P(OwnerLostTest, ASuccessorOfTheSameNameMakesItAnew) {
  const auto counter = MakeAt("bob");
  Promise<void> moved;
  counter.OnOwnerLost(
      [this, moved](const RRef<Counter>& lost, const absl::Status&) {
        const auto anew = rpc::Create<Counter>(alice_, "bob", 7).Await(5s);
        moved.Set(anew.ok() ? lost.MoveTo(*anew) : anew.status());
      });
  cluster_.Restart("bob");
  ASSERT_THAT(moved.future().Await(10s), IsOk());
  EXPECT_EQ(*counter.Async<&Counter::Get>().Await(5s), 7);
}

// [supervise]
// Makes the counter anew at a spare each time that its worker is lost.
void Supervise(rpc::Agent& agent, const RRef<Counter>& counter) {
  counter.OnOwnerLost(
      [&agent](const RRef<Counter>& lost, const absl::Status& cause) {
        const std::vector<rpc::WorkerInfo> spares = rpc::Spares(agent);
        if (spares.empty()) {
          LogError("no spare is left: ", cause.message());
          return;
        }
        const auto anew = rpc::Create<Counter>(agent, spares[0], 0).Await();
        if (!anew.ok()) {
          LogError(anew.status().message());
          return;
        }
        Supervise(agent, *anew);
        lost.MoveTo(*anew).IgnoreError();  // calls of all copies go there
      });
}
// [end]

TEST_P(OwnerLostTest, ASpareTakesItsPlace) {
  const auto counter = MakeAt("bob");
  Supervise(alice_, counter);
  cluster_.Kill("bob");
  EXPECT_TRUE(Within(10s, [&] { return counter.owner().name == "spare1"; }));
  EXPECT_EQ(*counter.Async<&Counter::Add>(2).Await(5s), 2);
}

TEST_P(OwnerLostTest, AHandlerMayDropItsRRef) {
  auto counter = std::make_shared<RRef<Counter>>(MakeAt("bob"));
  Promise<void> dropped;
  counter->OnOwnerLost([weak = std::weak_ptr(counter), dropped](
                           const RRef<Counter>&, const absl::Status&) {
    *weak.lock() = {};
    dropped.Set(absl::OkStatus());
  });
  cluster_.Kill("bob");
  EXPECT_THAT(dropped.future().Await(10s), IsOk());
  EXPECT_FALSE(counter->valid());
}

TEST_P(OwnerLostTest, WhoHasDroppedItHearsNothing) {
  auto counter = MakeAt("bob");
  const HeardPtr heard = Listen(counter);
  auto copy = counter;
  counter = {};
  EXPECT_GT(heard.use_count(), 1);
  copy = {};
  EXPECT_TRUE(NobodyWillCall(heard));
  const HeardPtr other = Listen(MakeAt("bob"));
  cluster_.Kill("bob");
  EXPECT_TRUE(NobodyWillCall(other));
  EXPECT_EQ(heard->times + other->times, 0);
}

TEST_P(OwnerLostTest, AShutdownInOrderIsNoLoss) {
  const auto counter = MakeAt("bob");
  const HeardPtr heard = Listen(counter);
  cluster_.Shutdown();
  EXPECT_EQ(heard.use_count(), 1);
  const HeardPtr late = Listen(counter);
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_EQ(heard->times + late->times, 0);
}

TEST_P(OwnerLostTest, WhoBorrowsAnObjectHearsToo) {
  const auto counter = MakeAt("bob");
  ASSERT_THAT(alice_.Async<&Borrow>("carol", counter).Await(5s), IsOk());
  const HeardPtr by_alice = Listen(counter);
  const HeardPtr by_carol = Listen(borrowed);
  EXPECT_NE(counter.handle(), borrowed.handle());
  cluster_.Kill("bob");
  ExpectOnce(by_alice, "bob");
  ExpectOnce(by_carol, "bob");
}

TEST_P(OwnerLostTest, TheOwnerHearsNothingOfItself) {
  const auto counter =
      RRef<Counter>::Make(alice_, std::make_shared<Counter>(1));
  EXPECT_EQ(Listen(counter).use_count(), 1);
  EXPECT_EQ(Listen(RRef<Counter>()).use_count(), 1);
}

TEST_P(OwnerLostTest, WhoeverGaveThisWorkerUpIsLost) {
  const auto counter = MakeAt("bob");
  const HeardPtr heard = Listen(counter);
  cluster_["bob"].RemovePeer("alice");
  cluster_["bob"].AddPeer(alice_.self());
  EXPECT_EQ(*cluster_["bob"].Async<&Sum>("alice", 1, 2).Await(5s), 3);
  ExpectOnce(heard, "worker bob has given up worker alice");
}

TEST_P(OwnerLostTest, AnUnreachableWorkerIsLostToItsCreations) {
  const auto before = MakeAt("bob");
  cluster_.Kill("bob");
  ExpectOnce(Listen(before), "bob");
  const auto counter = alice_.Remote<&MakeCounter>("bob", 1);
  ExpectOnce(Listen(counter), "bob");
}

TEST_P(OwnerLostTest, ACreationThatFailsLosesNobody) {
  const auto refused = alice_.Remote<&MakeCounter>("bob", -1);
  const auto nobody = alice_.Remote<&MakeCounter>("nobody", 1);
  const HeardPtr heard = Listen(nobody);
  EXPECT_FALSE(nobody.Ready().Await(5s).ok());
  EXPECT_TRUE(NobodyWillCall(heard));
  EXPECT_FALSE(refused.Ready().Await(5s).ok());
  EXPECT_EQ(heard->times + Listen(refused)->times, 0);
}

// Objects are made, listened to and dropped while their owner is lost.
TEST_P(OwnerLostTest, EachHearsOnceWhateverComesFirst) {
  struct Kept {
    RRef<Counter> counter;
    HeardPtr heard;
  };
  for (int round = 0; round < 10; ++round) {
    const auto shared = MakeAt("bob");
    std::vector<Kept> kept;
    std::vector<HeardPtr> dropped;
    std::atomic<bool> lost{false};
    std::thread maker([&] {
      for (int more = 100; more > 0; more -= lost ? 1 : 0) {
        auto counter = alice_.Remote<&MakeCounter>("bob", 1);
        kept.push_back({shared, Listen(shared)});
        const HeardPtr heard = Listen(counter);
        if (more % 2 == 0) {
          kept.push_back({std::move(counter), heard});
        } else {
          dropped.push_back(heard);
        }
        if (kept.size() > 5000) break;
      }
    });
    EXPECT_TRUE(Within(5s, [] { return Counter::alive > 20; }));
    cluster_.Kill("bob");
    lost = true;
    maker.join();
    ExpectOnce(Listen(shared), "bob");
    for (const Kept& one : kept) {
      // While bob ended he may have refused to make it.
      const absl::Status now = one.counter.Ready().Await(5s);
      if (absl::IsFailedPrecondition(now)) {
        EXPECT_TRUE(NobodyWillCall(one.heard));
        EXPECT_EQ(one.heard->times, 0);
      } else {
        ExpectOnce(one.heard, "bob");
      }
    }
    for (const HeardPtr& heard : dropped) {
      EXPECT_TRUE(NobodyWillCall(heard));
      EXPECT_LE(heard->times, 1);
    }
    cluster_.Restart("bob");
  }
}

}  // namespace
}  // namespace baton::testing

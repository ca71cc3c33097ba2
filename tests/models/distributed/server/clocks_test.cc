// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/clocks.h"

#include <gtest/gtest.h>

namespace baton::dist {
namespace {

constexpr TrainerId kA{1}, kB{2}, kC{3};

ServerOptions Mode(Consistency mode, int trainers, int64_t staleness = 0) {
  ServerOptions options;
  options.mode = mode;
  options.trainers = trainers;
  options.staleness = staleness;
  return options;
}

TEST(Clocks, ARoundWaitsForAllThatAreExpectedAndThenForAllThatAreThere) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 2));
  EXPECT_TRUE(clocks.Join(kA, {}));
  EXPECT_FALSE(clocks.Join(kA, {}));
  clocks.Count(kA, 1);
  EXPECT_FALSE(clocks.RoundIsWhole());
  EXPECT_FALSE(clocks.MayGo(kA));
  EXPECT_TRUE(clocks.Join(kB, {}));  // one of those expected: this round's
  EXPECT_FALSE(clocks.RoundIsWhole());
  clocks.Count(kB, 1);
  EXPECT_TRUE(clocks.RoundIsWhole());
  clocks.EndRound();
  EXPECT_TRUE(clocks.MayGo(kA));
  EXPECT_TRUE(clocks.MayGo(kB));
  EXPECT_FALSE(clocks.RoundIsWhole());
}

TEST(Clocks, NewcomersCountFromTheNextRoundThatHasNotBegun) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 1));
  clocks.Join(kA, {});
  clocks.Join(kB, {});
  EXPECT_EQ(clocks.Find(kB)->clock, 0);
  clocks.Count(kA, 1);
  clocks.Join(kC, {});
  EXPECT_EQ(clocks.Find(kC)->clock, 1);
  EXPECT_FALSE(clocks.MayGo(kC));
  clocks.Count(kB, 1);
  EXPECT_TRUE(clocks.RoundIsWhole());  // C is not waited for
  clocks.EndRound();
  EXPECT_TRUE(clocks.MayGo(kC));
  clocks.Count(kA, 2);
  clocks.Count(kB, 2);
  EXPECT_FALSE(clocks.RoundIsWhole());  // now it is
}

TEST(Clocks, WhoLeavesIsNotWaitedFor) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 2));
  clocks.Join(kA, {});
  clocks.Join(kB, {});
  clocks.Count(kA, 1);
  clocks.Leave(kB);
  EXPECT_TRUE(clocks.RoundIsWhole());
  // What the last one has pushed counts though nobody is there any more.
  clocks.Leave(kA);
  EXPECT_TRUE(clocks.RoundIsWhole());
}

TEST(Clocks, WhoIsGivenUpBeforeItJoinsIsNotWaitedFor) {
  for (const Consistency mode :
       {Consistency::kBulkSynchronous, Consistency::kBoundedStale}) {
    ServerOptions options = Mode(mode, 3);
    for (const char* const worker : {"alice", "bob", "bob"})
      options.trainer_workers.emplace_back().name = worker;
    Clocks clocks(options);
    clocks.Join(kA, {.worker = "alice"});
    clocks.Join(kC, {.worker = "dave"});  // nobody that is expected
    clocks.Count(kA, 1);
    clocks.Count(kC, 1);
    clocks.Join(kB, {.worker = "bob"});
    clocks.Count(kB, 1);
    EXPECT_FALSE(clocks.Awaits("alice"));
    EXPECT_TRUE(clocks.Awaits("bob"));  // its second one
    EXPECT_FALSE(clocks.RoundIsWhole());
    EXPECT_FALSE(clocks.MayGo(kA));
    clocks.GiveUp("alice");
    EXPECT_FALSE(clocks.MayGo(kA));
    Clocks copy(options, clocks.readings());
    for (Clocks* each : {&clocks, &copy}) {
      each->GiveUp("bob");
      const bool has_rounds = mode == Consistency::kBulkSynchronous;
      EXPECT_EQ(each->RoundIsWhole(), has_rounds);
      if (has_rounds) each->EndRound();
      EXPECT_TRUE(each->MayGo(kA));
    }
  }
}

TEST(Clocks, NobodyGetsFurtherAheadThanTheStaleness) {
  Clocks clocks(Mode(Consistency::kBoundedStale, 2, 2));
  clocks.Join(kA, {});
  clocks.Join(kB, {});
  for (int64_t push = 1; push <= 3; ++push) {
    EXPECT_TRUE(clocks.MayGo(kA)) << push;
    clocks.Count(kA, push);
  }
  EXPECT_FALSE(clocks.MayGo(kA));
  EXPECT_TRUE(clocks.MayGo(kB));
  clocks.Count(kB, 1);
  EXPECT_TRUE(clocks.MayGo(kA));
  clocks.Join(kC, {});  // as far as the slowest
  EXPECT_EQ(clocks.Find(kC)->clock, 1);
  clocks.Leave(kB);
  clocks.Leave(kC);
  EXPECT_EQ(clocks.Slowest(), 3);
  clocks.Leave(kA);
  EXPECT_EQ(clocks.Slowest(), 3);
}

TEST(Clocks, TheCutHasThePushesOfRoundsThatHaveEnded) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 2));
  clocks.Join(kA, {});
  clocks.Join(kB, {});
  clocks.Count(kA, 1);
  EXPECT_FALSE(Has(clocks.cut(), kA, 1));
  clocks.Leave(kA);
  EXPECT_FALSE(Reaches(clocks.cut(), {{kA, {.last = 1}}}));  // it still may
  clocks.Count(kB, 1);
  clocks.EndRound();
  EXPECT_TRUE(Has(clocks.cut(), kA, 1));
  EXPECT_TRUE(Has(clocks.cut(), kB, 1));
  EXPECT_TRUE(Reaches(clocks.cut(), {{kA, {.last = 2}}}));  // never
  EXPECT_FALSE(Reaches(clocks.cut(), {{kB, {.last = 2}}}));
  EXPECT_FALSE(Reaches(clocks.cut(), {{kC, {.last = 1}}}));
}

TEST(Clocks, TheCutOfAllModesWithoutRoundsHasEachPush) {
  for (const Consistency mode :
       {Consistency::kBoundedStale, Consistency::kAsynchronous}) {
    Clocks clocks(Mode(mode, 1, 2));
    clocks.Join(kA, {});
    clocks.Count(kA, 1);
    clocks.Count(kA, 2);
    EXPECT_TRUE(Has(clocks.cut(), kA, 2));
    EXPECT_FALSE(Has(clocks.cut(), kA, 3));
    Cut both = {{kA, {.last = 1}}, {kB, {.last = 1}}};
    EXPECT_FALSE(Reaches(clocks.cut(), both));
    Include(clocks.cut(), both);
    EXPECT_EQ(both[kA].last, 2);
    EXPECT_EQ(both[kB].last, 1);
  }
}

TEST(Clocks, ATrainerStartsAtALaterClockBeforeItsFirstPush) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 1));
  clocks.Join(kA, {});
  clocks.Join(kB, {});
  clocks.Start(kB, 1);
  clocks.Count(kA, 1);
  EXPECT_TRUE(clocks.RoundIsWhole());  // B is not waited for
  clocks.EndRound();
  clocks.Start(kB, 0);
  EXPECT_EQ(clocks.Find(kB)->clock, 1);
  clocks.Count(kB, 1);
  clocks.Start(kB, 5);
  EXPECT_EQ(clocks.Find(kB)->clock, 2);
}

// The last push of a trainer that was lost may have ended a round at one shard
// and not have come to another: there, its round would have no push.
TEST(Clocks, ARoundWithoutPushesIsPassedOver) {
  Clocks clocks(Mode(Consistency::kBulkSynchronous, 1));
  clocks.Join(kA, {});
  clocks.Leave(kA);
  clocks.Join(kB, {});
  clocks.Start(kB, 1);
  EXPECT_TRUE(clocks.MayGo(kB));
  // The same if the trainer is lost only then.
  clocks.Join(kC, {});
  clocks.Start(kC, 2);
  EXPECT_FALSE(clocks.MayGo(kC));
  clocks.Leave(kB);
  EXPECT_TRUE(clocks.MayGo(kC));
  clocks.Count(kC, 1);
  EXPECT_TRUE(clocks.RoundIsWhole());
}

TEST(Clocks, ATrainerThatStartsLaterWaitsForNobodyWhereItIsAlone) {
  Clocks clocks(Mode(Consistency::kBoundedStale, 1));
  clocks.Join(kA, {});
  clocks.Leave(kA);
  clocks.Join(kB, {});
  clocks.Start(kB, 5);
  EXPECT_TRUE(clocks.MayGo(kB));
}

TEST(Clocks, AsynchronousTrainersWaitForNobody) {
  Clocks clocks(Mode(Consistency::kAsynchronous, 2));
  clocks.Join(kA, {});
  for (int64_t push = 1; push <= 5; ++push) clocks.Count(kA, push);
  EXPECT_TRUE(clocks.MayGo(kA));
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "tests/models/distributed/recovery/recovered_cluster.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/local_cluster.h"
#include "tests/support/test_files.h"

// Pipelines that are recovered, of workers in this process.
namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;

TEST_F(RecoveryTest, ASpareTakesThePlaceOfAnyWorkerThatIsLost) {
  for (const std::string& victim : kStages) {
    SCOPED_TRACE(victim);
    testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "spare1"}));
    RecoveredStages stages(cluster["trainer"], kStages);
    const auto pipeline = stages.Pipeline(Recorded());
    EXPECT_EQ(Losses(*pipeline, {{3, [&] { cluster.Kill(victim); }}}), wanted_);
    ASSERT_EQ(recoveries_.size(), 1u);
    EXPECT_THAT(recoveries_[0].lost, ElementsAre(victim));
    EXPECT_THAT(recoveries_[0].successors, ElementsAre("spare1"));
    recoveries_.clear();
  }
}

TEST_F(RecoveryTest, AWorkerThatWasStartedAgainTakesItsPlaceAgain) {
  testing::LocalCluster cluster(OptionsOf(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  EXPECT_EQ(Losses(*pipeline, {{2, [&] { cluster.Restart("two"); }},
                               {3, [&] { cluster.Restart("three"); }},
                               {5, [&] { cluster.Restart("one"); }}}),
            wanted_);
  ASSERT_EQ(recoveries_.size(), 3u);
  EXPECT_THAT(recoveries_[2].successors, ElementsAre("one"));
}

TEST_F(RecoveryTest, ATrainerThatHasTakenNoStepIsRefusedOnceAnotherHasBegun) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "other"}));
  RecoveryOptions options;
  options.journal = folder.path() + "/journal";
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(options);
  RecoveredStages others_stages(cluster["other"], kStages);
  const auto others = others_stages.Pipeline(options);
  EXPECT_THAT(RecoveredStages::Step(*pipeline, 0),
              Fails(StatusCode::kPermissionDenied, "worker other"));
  EXPECT_EQ(Losses(*others, {}), wanted_);
}

// Orders that were under way when another trainer took the pipeline up.
TEST_F(RecoveryTest, AKeeperOfAFollowedTrainerTakesNoOrder) {
  testing::LocalCluster cluster(OptionsOf({"one", "other"}));
  rpc::Agent& trainer = cluster["trainer"];
  StateClaim claim{.pipeline = "p", .epoch = kEpochsOfTrainer};
  const auto store = rpc::Create<StateStore>(trainer, "one", claim).Await();
  ASSERT_THAT(store, IsOk());
  KeeperSpec spec{.epoch = claim.epoch, .own = *store, .buddy = *store};
  const auto keeper = rpc::Create<StateKeeper>(trainer, "one", spec).Await();
  ASSERT_THAT(keeper, IsOk());
  for (const int64_t step : {3, 4}) {
    ASSERT_THAT(
        keeper->Async<&StateKeeper::Begin>(step, RRef<StateStore>()).Await(),
        IsOk());
    ASSERT_THAT(keeper->Async<&StateKeeper::Safe>(step).Await(), IsOk());
  }
  claim.epoch = 2 * kEpochsOfTrainer;
  claim.takes_up = true;
  const auto others =
      rpc::Create<StateStore>(cluster["other"], "one", claim).Await();
  ASSERT_THAT(others, IsOk());
  const auto refused = Fails(StatusCode::kPermissionDenied, "worker other");
  EXPECT_THAT(keeper->Async<&StateKeeper::Begin>(5, RRef<StateStore>()).Await(),
              refused);
  EXPECT_THAT(keeper->Async<&StateKeeper::Begin>(4, *store).Await(), refused);
  EXPECT_THAT(rpc::Create<StateKeeper>(trainer, "one", spec).Await(), refused);
  EXPECT_THAT(*others->Async<&StateStore::Fence>(claim.epoch).Await(),
              ElementsAre(KeptState{0, 3}, KeptState{0, 4}));
}

TEST_F(RecoveryTest, TwoThatDoNotKeepEachOthersStateMayBeLostTogether) {
  const std::vector<std::string> four = {"one", "two", "three", "four"};
  const std::vector<double> wanted = LossesOf(four);
  testing::LocalCluster cluster(
      OptionsOf({"one", "two", "three", "four", "spare1", "spare2"}));
  RecoveredStages stages(cluster["trainer"], four);
  const auto pipeline = stages.Pipeline();
  EXPECT_EQ(Losses(*pipeline, {{4,
                                [&] {
                                  cluster.Kill("one");
                                  cluster.Kill("three");
                                }}}),
            wanted);
}

TEST_F(RecoveryTest, TheTrainerKeepsTheStateOfASingleWorker) {
  const std::vector<double> wanted = LossesOf({"one"});
  testing::LocalCluster cluster(OptionsOf({"one", "spare1"}));
  RecoveredStages stages(cluster["trainer"], {"one"});
  const auto pipeline = stages.Pipeline();
  EXPECT_EQ(Losses(*pipeline, {{4, [&] { cluster.Kill("one"); }}}), wanted);
}

TEST_F(RecoveryTest, RRefsOfWhatIsMadeAnewGoOnAndOthersSayWhoDied) {
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "spare1"}));
  rpc::Agent& trainer = cluster["trainer"];
  RecoveredStages stages(trainer, kStages);
  const auto other = Module<testing::NoisyStage>::Create(
                         trainer, "two", int64_t{6}, 0.0, uint64_t{1})
                         .Await();
  ASSERT_THAT(other, IsOk());
  const Module<testing::NoisyStage> module = stages.modules()[1];
  const auto pipeline = stages.Pipeline();
  EXPECT_EQ(Losses(*pipeline, {{3, [&] { cluster.Kill("two"); }}}), wanted_);
  EXPECT_EQ(module.owner().name, "spare1");
  EXPECT_THAT(module.NumParameters().Await(), IsOk());
  EXPECT_THAT(other->NumParameters().Await(),
              Fails(StatusCode::kUnavailable, "two"));
}

TEST_F(RecoveryTest, AnErrorOfTheBatchLeavesAllAsItWas) {
  testing::LocalCluster cluster(OptionsOf(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  const auto breaks = [&] {
    const auto result = pipeline->Step(
        Tensor::Ones({RecoveredStages::kRows, RecoveredStages::kWidth + 1}),
        Tensor::Zeros({RecoveredStages::kRows}, {.dtype = DType::kI64}));
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("stage 0 of 3"));
  };
  EXPECT_EQ(Losses(*pipeline, {{0, breaks}, {3, breaks}}), wanted_);
  EXPECT_EQ(pipeline->steps(), kSteps);
  EXPECT_THAT(recoveries_, IsEmpty());
}

TEST_F(RecoveryTest, SaysWhosePlaceNobodyTakes) {
  testing::LocalCluster cluster(OptionsOf(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  RecoveryOptions options = Recorded();
  options.successor_timeout = std::chrono::seconds(3);
  const auto pipeline = stages.Pipeline(options);
  RecoveredStages::LossOf(*pipeline, 0);
  cluster.Kill("two");
  const auto nobody = Fails(StatusCode::kUnavailable,
                            "no worker takes the place of two, which is lost");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(RecoveredStages::Step(*pipeline, 1), nobody);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(pipeline->status(), nobody);
  EXPECT_THAT(RecoveredStages::Step(*pipeline, 1), nobody);
}

TEST_F(RecoveryTest, StepsUnderWayAreDoneAgain) {
  for (const int at : {1, 2, kSteps - 1}) {
    SCOPED_TRACE(at);
    testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "spare1"}));
    RecoveredStages stages(cluster["trainer"], kStages);
    recoveries_.clear();
    const auto pipeline = stages.Pipeline(Recorded());
    std::vector<double> losses;
    const auto await = [&] {
      const auto result = pipeline->AwaitStep();
      ASSERT_THAT(result, IsOk());
      losses.push_back(result->loss);
    };
    ASSERT_THAT(RecoveredStages::BeginStep(*pipeline, 0), IsOk());
    for (int step = 1; step < kSteps; ++step) {
      ASSERT_THAT(RecoveredStages::BeginStep(*pipeline, step), IsOk());
      EXPECT_THAT(RecoveredStages::BeginStep(*pipeline, step),
                  Fails(StatusCode::kFailedPrecondition, "under way: 2"));
      EXPECT_THAT(pipeline->Keep(),
                  Fails(StatusCode::kFailedPrecondition, "under way: 2"));
      if (step == at) cluster.Kill("two");
      await();
    }
    await();
    EXPECT_EQ(losses, wanted_);
    ASSERT_EQ(recoveries_.size(), 1u);
    EXPECT_THAT(recoveries_[0].lost, ElementsAre("two"));
    EXPECT_THAT(pipeline->AwaitStep(),
                Fails(StatusCode::kFailedPrecondition, "no step"));
  }
}

TEST_F(RecoveryTest, AfterAnErrorOfABatchNoStepIsUnderWay) {
  testing::LocalCluster cluster(OptionsOf(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  std::vector<double> losses = {RecoveredStages::LossOf(*pipeline, 0)};
  ASSERT_THAT(
      pipeline->BeginStep(
          Tensor::Ones({RecoveredStages::kRows, RecoveredStages::kWidth + 1}),
          Tensor::Zeros({RecoveredStages::kRows}, {.dtype = DType::kI64})),
      IsOk());
  ASSERT_THAT(RecoveredStages::BeginStep(*pipeline, 1), IsOk());
  EXPECT_THAT(std::string(pipeline->AwaitStep().status().message()),
              HasSubstr("stage 0 of 3"));
  EXPECT_THAT(pipeline->AwaitStep(),
              Fails(StatusCode::kFailedPrecondition, "no step"));
  for (int step = 1; step < kSteps; ++step)
    losses.push_back(RecoveredStages::LossOf(*pipeline, step));
  EXPECT_EQ(losses, wanted_);
  EXPECT_THAT(recoveries_, IsEmpty());
}

TEST_F(RecoveryTest, AJournalTakesOneStepAtATime) {
  const testing::TempFolder folder;
  testing::LocalCluster cluster(OptionsOf(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline({.journal = folder / "journal"});
  EXPECT_EQ(pipeline->most_under_way(), 1u);
  ASSERT_THAT(RecoveredStages::BeginStep(*pipeline, 0), IsOk());
  EXPECT_THAT(RecoveredStages::BeginStep(*pipeline, 1),
              Fails(StatusCode::kFailedPrecondition, "under way: 1"));
  EXPECT_THAT(pipeline->AwaitStep(), IsOk());
}

TEST_F(RecoveryTest, AnEvaluationIsDoneAgainToo) {
  testing::LocalCluster cluster(OptionsOf({"one", "two", "three", "spare1"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline();
  const Tensor x =
      Tensor::Ones({RecoveredStages::kRows, RecoveredStages::kWidth});
  const auto evaluated = [&] {
    const auto before = pipeline->Evaluate(x);
    cluster.Kill("two");
    const auto after = pipeline->Evaluate(x);
    ASSERT_THAT(after, IsOk());
    EXPECT_TRUE(ops::BitEqual(before->outputs[0], after->outputs[0]));
  };
  EXPECT_EQ(Losses(*pipeline, {{3, evaluated}}), wanted_);
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/ops/arithmetic.h"
#include "rpc/frames.h"
#include "tests/models/distributed/recovery/recovered_cluster.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/fault.h"
#include "tests/support/local_cluster.h"
#include "tests/support/test_files.h"

// Pipelines that are recovered, of workers in this process.
namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Lt;

bool GoesFromTo(const rpc::WorkerInfo& sender, const std::string& receiver,
                const std::string& from, const std::string& to) {
  return sender.name == from && receiver == to;
}

// Delays what has tensors.
rpc::FaultRule DelayTensors(const std::string& from, const std::string& to) {
  return {.kind = rpc::FaultKind::kDelay,
          .matches =
              [=](const rpc::WorkerInfo& sender, const std::string& receiver,
                  const rpc::Message& message) {
                return GoesFromTo(sender, receiver, from, to) &&
                       !message.tensors.empty();
              },
          .delay = std::chrono::milliseconds(500)};
}

bool IsCall(const rpc::Message& message) {
  return !message.header.empty() &&
         message.header[0] ==
             static_cast<char>(rpc::internal::FrameKind::kRequest);
}

// The connection ends with the next calls, or with the next messages that have
// tensors.
rpc::FaultRule Sever(const std::string& from, const std::string& to,
                     int messages, bool tensors) {
  return {.kind = rpc::FaultKind::kSever,
          .matches =
              [=](const rpc::WorkerInfo& sender, const std::string& receiver,
                  const rpc::Message& message) {
                return GoesFromTo(sender, receiver, from, to) &&
                       (tensors ? !message.tensors.empty() : IsCall(message));
              },
          .at_most = messages};
}

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

// It is no part of the pipeline, so nobody waits until it is given up.
TEST_F(RecoveryTest, AnotherWorkerThatIsCutOffDelaysNoRecovery) {
  const testing::TempFolder folder;
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers =
      OptionsOf({"one", "two", "three", "spare1", "spare2"});
  workers.lease = std::chrono::seconds(20);
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  RecoveryOptions options = Recorded();
  options.journal = folder.path() + "/journal";
  const auto pipeline = stages.Pipeline(options);
  const auto lose_two = [&] {
    faults->Add({.kind = rpc::FaultKind::kSever,
                 .matches = [](const rpc::WorkerInfo& from,
                               const std::string& to, const rpc::Message&) {
                   return from.name == "spare2" || to == "spare2";
                 }});
    cluster.Restart("two");
  };
  EXPECT_EQ(Losses(*pipeline, {{3, lose_two}}), wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].successors, ElementsAre("two"));
  EXPECT_TRUE(absl::c_any_of(
      cluster["trainer"].workers(),
      [](const auto& worker) { return worker.name == "spare2"; }));
  faults->Clear();
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

// It has been given up, and has the state of the one that is dead.
TEST_F(RecoveryTest, AWorkerThatIsCutOffIsWaitedForWhereItAloneHasAState) {
  const testing::TempFolder folder;
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers =
      OptionsOf({"one", "two", "three", "spare1", "spare2"});
  workers.lease = std::chrono::seconds(1);
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  rpc::Agent& trainer = cluster["trainer"];
  RecoveredStages stages(trainer, kStages);
  RecoveryOptions options = Recorded();
  options.journal = folder.path() + "/journal";
  const auto pipeline = stages.Pipeline(options);
  trainer.WatchMembers([&trainer, faults](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kLost) return;
    if (event.worker.name != "two") return;
    trainer.timer().After(std::chrono::seconds(1),
                          [faults] { faults->Clear(); });
  });
  const auto lose_one_and_cut_two_off = [&] {
    faults->Add({.kind = rpc::FaultKind::kSever,
                 .matches = [](const rpc::WorkerInfo& from,
                               const std::string& to, const rpc::Message&) {
                   return (from.name == "trainer" && to == "two") ||
                          (from.name == "two" && to == "trainer");
                 }});
    cluster.Kill("one");
  };
  EXPECT_EQ(Losses(*pipeline, {{3, lose_one_and_cut_two_off}}), wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].lost, ElementsAre("one", "two"));
  EXPECT_THAT(recoveries_[0].successors, ElementsAre("spare1", "spare2"));
}

// Its buddy gets the first state late.
TEST_F(RecoveryTest, AWorkerThatIsLostAsSoonAsThePipelineIsMadeIsReplaced) {
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers =
      OptionsOf({"one", "two", "three", "spare1"});
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  faults->Add(DelayTensors("three", "one"));
  const auto pipeline = stages.Pipeline(Recorded());
  cluster.Kill("three");
  EXPECT_EQ(Losses(*pipeline, {}), wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].successors, ElementsAre("spare1"));
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

TEST_F(RecoveryTest, ALinkMayBreakManyTimesInARow) {
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers = OptionsOf(kStages);
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  EXPECT_EQ(Losses(*pipeline,
                   {{3, [&] { faults->Add(Sever("one", "two", 20, true)); }}}),
            wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].lost, IsEmpty());
  EXPECT_GT(recoveries_[0].tries, 3);
}

TEST_F(RecoveryTest, AStateThatNotAllCouldKeepIsUndone) {
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers = OptionsOf(kStages);
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  const auto keep_in_vain = [&] {
    const Module<testing::NoisyStage>& first = stages.modules()[0];
    auto state = first.StateDict().Await();
    ASSERT_THAT(state, IsOk());
    for (auto& [name, tensor] : *state) tensor = Tensor::ZerosLike(tensor);
    ASSERT_THAT(first.LoadStateDict(*state).Await(), IsOk());
    faults->Add(Sever("trainer", "two", 1, false));
    EXPECT_THAT(pipeline->Keep(), Fails(StatusCode::kUnavailable, "two"));
  };
  EXPECT_EQ(Losses(*pipeline, {{0, keep_in_vain}, {3, keep_in_vain}}), wanted_);
  EXPECT_EQ(pipeline->steps(), kSteps);
  ASSERT_EQ(recoveries_.size(), 2u);
  EXPECT_EQ(recoveries_[1].step + recoveries_[1].redone, 3);
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

// Copies reach the buddies a second late.
TEST_F(RecoveryTest, StepsDoNotWaitForCopiesUntilTooManyWouldBeRepeated) {
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers =
      OptionsOf({"one", "two", "three", "spare1"});
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  RecoveryOptions options = Recorded();
  options.most_redone = 5;
  const auto pipeline = stages.Pipeline(options);
  constexpr std::chrono::milliseconds kLate{1000};
  faults->Add({.kind = rpc::FaultKind::kDelay,
               .matches =
                   [](const rpc::WorkerInfo&, const std::string&,
                      const rpc::Message& message) {
                     return message.tensors.size() > 4;  // a state
                   },
               .delay = kLate});
  std::vector<double> seconds;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    if (step == kSteps - 1) cluster.Kill("two");
    const auto begin = std::chrono::steady_clock::now();
    losses.push_back(RecoveredStages::LossOf(*pipeline, step));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  EXPECT_EQ(losses, wanted_);
  EXPECT_GT(faults->injected(), 0);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_LE(recoveries_[0].redone, 2 * options.most_redone);
  EXPECT_THAT(std::vector(seconds.begin(), seconds.begin() + 5), Each(Lt(0.5)));
  EXPECT_THAT(std::vector(seconds.begin() + 5, seconds.end() - 1),
              Contains(Gt(0.1)));
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

// The successor of the first gets the state of the one before it late.
TEST_F(RecoveryTest, TwoAreLostOneAfterTheOtherBetweenSteps) {
  const auto faults = std::make_shared<rpc::FaultPlan>();
  testing::ClusterOptions workers =
      OptionsOf({"one", "two", "three", "spare1", "spare2"});
  workers.faults = faults;
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline();
  const auto lose_both = [&] {
    cluster.Kill("one");
    faults->Add(DelayTensors("three", "spare1"));
    EXPECT_THAT(pipeline->Evaluate(Tensor::Ones(
                    {RecoveredStages::kRows, RecoveredStages::kWidth})),
                IsOk());
    cluster.Kill("three");
  };
  EXPECT_EQ(Losses(*pipeline, {{3, lose_both}}), wanted_);
}

}  // namespace
}  // namespace baton::dist

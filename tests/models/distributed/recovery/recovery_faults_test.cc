// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "models/distributed/recovery.h"
#include "rpc/frames.h"
#include "tests/models/distributed/recovery/recovered_cluster.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/fault.h"
#include "tests/support/local_cluster.h"
#include "tests/support/test_files.h"

// Pipelines that are recovered where links break and messages are late.
namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::Gt;
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

// It is no part of the pipeline, so nobody waits until it is given up.
TEST_F(RecoveryTest, AnotherWorkerThatIsCutOffDelaysNoRecovery) {
  const testing::TempFolder folder;
  testing::ClusterOptions workers =
      WithFaults({"one", "two", "three", "spare1", "spare2"});
  workers.lease = std::chrono::seconds(20);
  testing::LocalCluster cluster(workers);
  RecoveredStages stages(cluster["trainer"], kStages);
  RecoveryOptions options = Recorded();
  options.journal = folder.path() + "/journal";
  const auto pipeline = stages.Pipeline(options);
  const auto lose_two = [&] {
    faults_->Add({.kind = rpc::FaultKind::kSever,
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
  faults_->Clear();
}

// It has been given up, and has the state of the one that is dead.
TEST_F(RecoveryTest, AWorkerThatIsCutOffIsWaitedForWhereItAloneHasAState) {
  const testing::TempFolder folder;
  testing::ClusterOptions workers =
      WithFaults({"one", "two", "three", "spare1", "spare2"});
  workers.lease = std::chrono::seconds(1);
  testing::LocalCluster cluster(workers);
  rpc::Agent& trainer = cluster["trainer"];
  RecoveredStages stages(trainer, kStages);
  RecoveryOptions options = Recorded();
  options.journal = folder.path() + "/journal";
  const auto pipeline = stages.Pipeline(options);
  trainer.WatchMembers(
      [&trainer, faults = faults_](const rpc::MemberEvent& event) {
        if (event.kind != rpc::MemberEvent::Kind::kLost) return;
        if (event.worker.name != "two") return;
        trainer.timer().After(std::chrono::seconds(1),
                              [faults] { faults->Clear(); });
      });
  const auto lose_one_and_cut_two_off = [&] {
    faults_->Add({.kind = rpc::FaultKind::kSever,
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
  testing::LocalCluster cluster(WithFaults({"one", "two", "three", "spare1"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  faults_->Add(DelayTensors("three", "one"));
  const auto pipeline = stages.Pipeline(Recorded());
  cluster.Kill("three");
  EXPECT_EQ(Losses(*pipeline, {}), wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].successors, ElementsAre("spare1"));
}

TEST_F(RecoveryTest, ALinkMayBreakManyTimesInARow) {
  testing::LocalCluster cluster(WithFaults(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  EXPECT_EQ(Losses(*pipeline,
                   {{3, [&] { faults_->Add(Sever("one", "two", 20, true)); }}}),
            wanted_);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_THAT(recoveries_[0].lost, IsEmpty());
  EXPECT_GT(recoveries_[0].tries, 3);
}

TEST_F(RecoveryTest, AStateThatNotAllCouldKeepIsUndone) {
  testing::LocalCluster cluster(WithFaults(kStages));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline(Recorded());
  const auto keep_in_vain = [&] {
    const Module<testing::NoisyStage>& first = stages.modules()[0];
    auto state = first.StateDict().Await();
    ASSERT_THAT(state, IsOk());
    for (auto& [name, tensor] : *state) tensor = Tensor::ZerosLike(tensor);
    ASSERT_THAT(first.LoadStateDict(*state).Await(), IsOk());
    faults_->Add(Sever("trainer", "two", 1, false));
    EXPECT_THAT(pipeline->Keep(), Fails(StatusCode::kUnavailable, "two"));
  };
  EXPECT_EQ(Losses(*pipeline, {{0, keep_in_vain}, {3, keep_in_vain}}), wanted_);
  EXPECT_EQ(pipeline->steps(), kSteps);
  ASSERT_EQ(recoveries_.size(), 2u);
  EXPECT_EQ(recoveries_[1].step + recoveries_[1].redone, 3);
}

// Copies reach the buddies a second late.
TEST_F(RecoveryTest, StepsDoNotWaitForCopiesUntilTooManyWouldBeRepeated) {
  testing::LocalCluster cluster(WithFaults({"one", "two", "three", "spare1"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  RecoveryOptions options = Recorded();
  options.most_redone = 5;
  const auto pipeline = stages.Pipeline(options);
  constexpr std::chrono::milliseconds kLate{1000};
  faults_->Add({.kind = rpc::FaultKind::kDelay,
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
  EXPECT_GT(faults_->injected(), 0);
  ASSERT_EQ(recoveries_.size(), 1u);
  EXPECT_LE(recoveries_[0].redone, 2 * options.most_redone);
  EXPECT_THAT(std::vector(seconds.begin(), seconds.begin() + 5), Each(Lt(0.5)));
  EXPECT_THAT(std::vector(seconds.begin() + 5, seconds.end() - 1),
              Contains(Gt(0.1)));
}

// The successor of the first gets the state of the one before it late.
TEST_F(RecoveryTest, TwoAreLostOneAfterTheOtherBetweenSteps) {
  testing::LocalCluster cluster(
      WithFaults({"one", "two", "three", "spare1", "spare2"}));
  RecoveredStages stages(cluster["trainer"], kStages);
  const auto pipeline = stages.Pipeline();
  const auto lose_both = [&] {
    cluster.Kill("one");
    faults_->Add(DelayTensors("three", "spare1"));
    EXPECT_THAT(pipeline->Evaluate(Tensor::Ones(
                    {RecoveredStages::kRows, RecoveredStages::kWidth})),
                IsOk());
    cluster.Kill("three");
  };
  EXPECT_EQ(Losses(*pipeline, {{3, lose_both}}), wanted_);
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/mutex.h"
#include "rpc/agent.h"
#include "rpc/frames.h"
#include "tests/rpc/held_call.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// What a transport says of a message that failed may come long after the worker
// that it was for was lost, or removed, and has come back.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using rpc::FaultKind;
using rpc::internal::FrameKind;

class LateReportTest : public ::testing::Test {
 protected:
  ~LateReportTest() override { cluster_.ExpectIdle(); }

  auto Is(FrameKind kind) {
    return [kind](const rpc::WorkerInfo& from, const std::string&,
                  const rpc::Message& message) {
      return from.name == "alice" && !message.header.empty() &&
             message.header[0] == static_cast<char>(kind);
    };
  }
  // The next message of that kind from alice is lost; its report is kept.
  void FailNext(FrameKind kind) {
    plan_->Add({.kind = FaultKind::kFail,
                .matches = Is(kind),
                .at_most = 1,
                .report = [this](Task tell) {
                  MutexLock lock(mutex_);
                  report_ = std::move(tell);
                  lost_.Open();
                }});
  }
  // A control message of alice's to bob fails, and nobody has said so yet.
  void LoseAControlMessage() {
    auto counter = rpc::Create<Counter>(alice_, "bob", 1).Await(5s);
    ASSERT_THAT(counter, IsOk());
    FailNext(FrameKind::kControl);
    *counter = {};
    ASSERT_TRUE(lost_.Await());
  }
  void Report() {
    MutexLock lock(mutex_);
    report_();
  }
  // The report came in when a call after it is answered: both go through one
  // queue of alice's.
  void ExpectThatAReportHurtsNoCall() {
    Future<int> call = alice_.Async<&Wait>("bob");
    ASSERT_TRUE(held_.AwaitEntered());
    Report();
    EXPECT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
    held_.Answer(7);
    auto result = call.Await(5s);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(*result, 7);
  }

  HeldCall held_;
  Gate lost_;
  Mutex mutex_;
  Task report_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<rpc::FaultPlan> plan_ = std::make_shared<rpc::FaultPlan>();
  LocalCluster cluster_{{.fill = &FillHeldCall, .lease = 60s, .faults = plan_}};
  rpc::Agent& alice_ = cluster_["alice"];
};

TEST_F(LateReportTest, AWorkerThatWasAddedAgainIsNotLost) {
  LoseAControlMessage();
  const rpc::WorkerInfo bob = cluster_["bob"].self();
  alice_.RemovePeer("bob");
  alice_.AddPeer(bob);
  ExpectThatAReportHurtsNoCall();
}

// A late message makes a removed worker known here, and not to the transport.
TEST_F(LateReportTest, AWorkerThatWasHeardWhileItWasRemovedIsNotLost) {
  rpc::Agent& bob = cluster_["bob"];
  ASSERT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
  // Before that: any late message of bob's is told that he was given up.
  FailNext(FrameKind::kControl);
  alice_.RemovePeer("bob");
  EXPECT_FALSE(bob.Async<&Sum>("alice", 1, 2).Await(5s).ok());
  ASSERT_TRUE(lost_.Await());
  alice_.AddPeer(bob.self());
  ExpectThatAReportHurtsNoCall();
}

TEST_F(LateReportTest, AWorkerThatCameBackAfterALossIsNotLost) {
  LoseAControlMessage();
  plan_->Add({.kind = FaultKind::kSever,
              .matches = Is(FrameKind::kRequest),
              .at_most = 1});
  EXPECT_FALSE(alice_.Async<&Sum>("bob", 1, 2).Await(5s).ok());
  // What was lost with the connection may take one more call along.
  while (!alice_.Async<&Sum>("bob", 1, 2).Await(5s).ok()) {
  }
  ExpectThatAReportHurtsNoCall();
}

TEST_F(LateReportTest, AWorkerThatWasHeardMeanwhileIsNotLost) {
  LoseAControlMessage();
  ASSERT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
  ExpectThatAReportHurtsNoCall();
}

// A request's report is of that request alone.
TEST_F(LateReportTest, ARequestThatFailedFailsNoOther) {
  ASSERT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
  FailNext(FrameKind::kRequest);
  Future<int> failed = alice_.Async<&Sum>("bob", 1, 2);
  ASSERT_TRUE(lost_.Await());
  EXPECT_FALSE(failed.ready());
  ExpectThatAReportHurtsNoCall();
  EXPECT_THAT(failed.Await(5s),
              Fails(absl::StatusCode::kUnavailable, "the message was lost"));
}

}  // namespace
}  // namespace baton::testing

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/agent.h"
#include "rpc/frames.h"
#include "rpc/transports/grpc.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Requests that come when their caller does not wait any more: nobody would end
// what they begin.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using rpc::FaultKind;
using rpc::internal::FrameKind;

// Answers when its caller gives it up, or is lost.
Future<int> UntilGivenUp(rpc::CallContext& call) {
  const Promise<int> end;
  call.OnCancel([end](const absl::Status& why) { end.Set(why); });
  return end.future();
}
void FillForLateRequests(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&UntilGivenUp>();
}

class LateRequestTest : public ::testing::Test {
 protected:
  // Nothing is served that has no caller.
  ~LateRequestTest() override { cluster_.ExpectIdle(); }

  static bool IsRequest(const rpc::WorkerInfo& from, const std::string&,
                        const rpc::Message& message) {
    return from.name == "alice" && !message.header.empty() &&
           message.header[0] == static_cast<char>(FrameKind::kRequest);
  }
  // The next request of alice's goes behind the message after it.
  void HoldNextRequest() {
    plan_->Add({.kind = FaultKind::kReorder,
                .matches = &IsRequest,
                .at_most = 1,
                .delay = 60s});
  }
  // What was sent to bob before has been dealt with.
  void ExpectAnAnswer() {
    while (!alice_.Async<&Sum>("bob", 1, 2).Await(5s).ok()) {
    }
  }

  std::shared_ptr<rpc::FaultPlan> plan_ = std::make_shared<rpc::FaultPlan>();
  LocalCluster cluster_{
      {.fill = &FillForLateRequests, .lease = 60s, .faults = plan_}};
  rpc::Agent& alice_ = cluster_["alice"];
};

TEST_F(LateRequestTest, BehindItsCancellationIsNotServed) {
  ExpectAnAnswer();
  HoldNextRequest();
  rpc::CancelSource cancel;
  Future<int> call = alice_.Async<&UntilGivenUp>(
      "bob", {.timeout = kNoLimit, .cancel = cancel.token()});
  cancel.Cancel();
  EXPECT_THAT(call.Await(5s), Fails(absl::StatusCode::kCancelled, ""));
  ExpectAnAnswer();
  EXPECT_EQ(plan_->injected(), 1);
}

TEST_F(LateRequestTest, OfACallThatALostConnectionEndedIsGivenUp) {
  ExpectAnAnswer();
  HoldNextRequest();
  Future<int> call = alice_.Async<&UntilGivenUp>("bob", {.timeout = kNoLimit});
  plan_->Add({.kind = FaultKind::kSever, .matches = &IsRequest, .at_most = 1});
  EXPECT_FALSE(alice_.Async<&Sum>("bob", 1, 2).Await(5s).ok());
  EXPECT_THAT(call.Await(5s), Fails(absl::StatusCode::kUnavailable, ""));
  ExpectAnAnswer();
  EXPECT_EQ(plan_->injected(), 2);
}

std::unique_ptr<rpc::Agent> StartOverGrpc(const std::string& name,
                                          std::vector<rpc::WorkerInfo> peers) {
  auto transport = rpc::MakeGrpcTransport({});
  EXPECT_THAT(transport, IsOk());
  rpc::Registry registry;
  FillForLateRequests(registry);
  rpc::AgentOptions options;
  options.self = {name, static_cast<rpc::Rank>(peers.size()), 7,
                  (*transport)->address()};
  options.peers = std::move(peers);
  auto agent = rpc::Agent::Start(std::move(options), std::move(registry),
                                 *std::move(transport));
  EXPECT_THAT(agent, IsOk());
  return *std::move(agent);
}

// Its caller does not know the incarnation yet.
TEST(FirstCall, ToAWorkerKnownByItsAddressOnlyCanBeCancelled) {
  const auto bob = StartOverGrpc("bob", {});
  rpc::WorkerInfo address = bob->self();
  address.incarnation = 0;
  const auto alice = StartOverGrpc("alice", {address});
  rpc::CancelSource cancel;
  Future<int> call = alice->Async<&UntilGivenUp>(
      "bob", {.timeout = kNoLimit, .cancel = cancel.token()});
  cancel.Cancel();
  EXPECT_THAT(call.Await(5s), Fails(absl::StatusCode::kCancelled, ""));
  // Bob takes this request after the cancellation.
  EXPECT_THAT(alice->Async<&Sum>("bob", 1, 2).Await(5s), IsOk());
  EXPECT_TRUE(bob->AwaitIdle(5s)) << bob->GetDebugInfo().ToString();
}

}  // namespace
}  // namespace baton::testing

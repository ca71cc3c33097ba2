// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "autograd/functions/reduce.h"
#include "rpc/frames.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Connections that break, and are made again, while both workers live.
namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;

class BrokenConnection : public ::testing::Test {
 protected:
  ~BrokenConnection() override { cluster_.ExpectIdle(); }

  // Loses the next `count` requests to a worker, each with its connection.
  void Sever(const std::string& name, int count) {
    plan_->Add({.kind = rpc::FaultKind::kSever,
                .matches =
                    [name](const rpc::WorkerInfo&, const std::string& to,
                           const rpc::Message& message) {
                      return to == name && !message.header.empty() &&
                             message.header[0] ==
                                 static_cast<char>(
                                     rpc::internal::FrameKind::kRequest);
                    },
                .at_most = count});
  }
  // Whether bob comes to have no context.
  bool BobHasNone() {
    Promise<void> never;
    for (int attempt = 0; attempt < 500; ++attempt) {
      if (OpenContexts(cluster_["bob"]).empty()) return true;
      never.future().Await(std::chrono::milliseconds(10)).IgnoreError();
    }
    return false;
  }

  std::shared_ptr<rpc::FaultPlan> plan_ = std::make_shared<rpc::FaultPlan>();
  testing::LocalCluster cluster_{{.names = {"alice", "bob"},
                                  .fill =
                                      [](rpc::Registry& registry) {
                                        Register(registry);
                                        AddRemoteMath(registry);
                                      },
                                  .lease = std::chrono::seconds(10),
                                  .on_start = Attach,
                                  .faults = plan_}};
  rpc::Agent& alice_ = cluster_["alice"];
};

// Nobody is lost, so that no lease ends the context at bob.
TEST_F(BrokenConnection, ThatTakesAReleaseAlongEndsItsContextAllTheSame) {
  for (int time = 0; time < 3; ++time) {
    const Variable x = Leaf(2);
    Context ctx(alice_);
    ASSERT_THAT(alice_.Async<&Multiply>("bob", ctx, x, x).Await(), IsOk());
    EXPECT_EQ(OpenContexts(cluster_["bob"]).size(), 1u);
    Sever("bob", 1);
    EXPECT_THAT(ctx.Release().Await(), IsOk());
    EXPECT_EQ(plan_->injected(), time + 1);
    EXPECT_TRUE(BobHasNone());
  }
}

TEST_F(BrokenConnection, FailsTheBackwardAndTheNextOneSucceeds) {
  const Variable x = Leaf(2);
  Context ctx(alice_);
  const Variable y = *alice_.Async<&Multiply>("bob", ctx, x, x).Await();
  const Variable loss = autograd::Sum(y);
  Sever("bob", 1);
  EXPECT_THAT(ctx.Backward(loss, {.retain_graph = true}),
              Fails(StatusCode::kUnavailable, "bob"));
  EXPECT_EQ(plan_->injected(), 1);
  ASSERT_THAT(ctx.Backward(loss, {.retain_graph = true}), IsOk());
  EXPECT_EQ(First(ctx.GradientOf(x)), 4);
}

}  // namespace
}  // namespace baton::dist

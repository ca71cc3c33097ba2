// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/distributed/edges.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "autograd/node.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/test_device.h"

// The recorded graph itself, at both ends of every edge.
namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

// "mul(receive 1 from alice, accumulate)".
std::string Draw(const autograd::Node* node) {
  if (node == nullptr) return "-";
  if (auto* edge = dynamic_cast<const ReceiveNode*>(node)) {
    return absl::StrCat("receive ", static_cast<uint64_t>(edge->id()), " from ",
                        edge->from());
  }
  Lines below;
  for (const autograd::Edge& edge : node->edges()) {
    below.push_back(Draw(edge.node.get()));
  }
  if (below.empty()) return node->name();
  return absl::StrCat(node->name(), "(", absl::StrJoin(below, ", "), ")");
}

Lines DrawSends(const ContextState& context) {
  Lines lines;
  for (uint64_t id = 1; auto send = context.FindSend(EdgeId{id}); ++id) {
    lines.push_back(absl::StrCat("to ", send->to(), ": ", Draw(send.get())));
  }
  return lines;
}

absl::StatusOr<Lines> SendsHere(rpc::CallContext& call) {
  ASSIGN_OR_RETURN(auto context, ContextOf(call));
  return DrawSends(*context);
}

Variable Same(const Variable& x) { return x; }

class GraphTest : public ThreeWorkers {
 protected:
  GraphTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&SendsHere>().AddFunction<&Same>();
        }) {}
  // What `worker` has sent in the context, in order.
  Lines SendsOf(const char* worker, const Context& ctx) {
    return *agent().Async<&SendsHere>(worker, ctx).Await();
  }
  static std::string DrawValue(const Variable& value) {
    return Draw(value.gradient_edge().node.get());
  }
};
INSTANTIATE_TEST_SUITE_P(, GraphTest, testing::kTransports,
                         testing::TransportName);

TEST_P(GraphTest, OfACallHasOneEdgeEachWay) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  Variable product = *agent().Async<&Multiply>("bob", ctx, a, b).Await();
  EXPECT_EQ(DrawValue(product), "receive 1 from bob");
  EXPECT_THAT(SendsOf("alice", ctx),
              ElementsAre("to bob: send(accumulate, accumulate)"));
  EXPECT_THAT(
      SendsOf("bob", ctx),
      ElementsAre("to alice: send(mul(receive 1 from alice, receive 1 from "
                  "alice))"));
}

TEST_P(GraphTest, OfARemoteResultIsCompletedByItsFetch) {
  Variable a = Leaf(3), b = Leaf(5);
  Context ctx(agent());
  RRef<Variable> product = agent().Remote<&Multiply>("bob", ctx, a, b);
  ASSERT_TRUE(product.Ready().Await().ok());
  EXPECT_THAT(SendsOf("bob", ctx), IsEmpty());
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(DrawValue(*product.Fetch(ctx).Await()),
              absl::StrCat("receive ", i, " from bob"));
  }
  EXPECT_EQ(SendsOf("bob", ctx).size(), 2u);
  EXPECT_EQ(SendsOf("alice", ctx).size(), 1u);
}

TEST_P(GraphTest, OfThreeHopsHasAnEdgeForEachHopAndEachReturn) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y =
      *agent()
           .Async<&Travel>("bob", ctx, x, std::vector<std::string>{"carol"})
           .Await();
  EXPECT_EQ(DrawValue(y), "receive 2 from bob");
  EXPECT_THAT(SendsOf("alice", ctx), ElementsAre("to bob: send(accumulate)"));
  EXPECT_THAT(
      SendsOf("bob", ctx),
      ElementsAre("to carol: send(mul(receive 1 from alice, receive 1 from "
                  "alice))",
                  "to alice: send(receive 1 from carol)"));
  EXPECT_THAT(
      SendsOf("carol", ctx),
      ElementsAre("to bob: send(mul(receive 1 from bob, receive 1 from bob))"));
}

TEST_P(GraphTest, OfACallThatComesBackToItsCaller) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y =
      *agent()
           .Async<&Travel>("bob", ctx, x, std::vector<std::string>{"alice"})
           .Await();
  EXPECT_THAT(
      SendsOf("alice", ctx),
      ElementsAre("to bob: send(accumulate)",
                  "to bob: send(mul(receive 1 from bob, receive 1 from bob))"));
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 32);  // 4 x^3
}

TEST_P(GraphTest, OfACallToOneself) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("alice", ctx, x, x).Await();
  EXPECT_EQ(DrawValue(y), "receive 2 from alice");
  EXPECT_THAT(
      SendsOf("alice", ctx),
      ElementsAre("to alice: send(accumulate, accumulate)",
                  "to alice: send(mul(receive 1 from alice, receive 1 from "
                  "alice))"));
}

TEST_P(GraphTest, HasNoEdgeWhereNothingRequiresGrad) {
  Context ctx(agent());
  Variable x(test::Put(Tensor::Ones({2})));
  EXPECT_TRUE(agent().Async<&Multiply>("bob", ctx, x, x).Await().ok());
  EXPECT_TRUE(
      agent().Remote<&Multiply>("bob", ctx, x, x).Fetch(ctx).Await().ok());
  EXPECT_THAT(SendsOf("alice", ctx), IsEmpty());
  EXPECT_THAT(SendsOf("bob", ctx), IsEmpty());
}

TEST_P(GraphTest, HasOnlyTheReturnWhereTheResultAloneRequiresGrad) {
  RRef<Scale> scale = MakeScale("bob", 4);
  Context ctx(agent());
  ASSERT_TRUE(scale.Async<&Scale::Forward>(ctx, test::Put(Tensor::Ones({2})))
                  .Await()
                  .ok());
  RRef<Variable> kept =
      scale.Remote<&Scale::Forward>(ctx, test::Put(Tensor::Ones({2})));
  ASSERT_TRUE(kept.Fetch(ctx).Await().ok());
  EXPECT_THAT(SendsOf("alice", ctx), IsEmpty());
  EXPECT_THAT(SendsOf("bob", ctx),
              ElementsAre("to alice: send(mul(-, accumulate))",
                          "to alice: send(mul(-, accumulate))"));
}

TEST_P(GraphTest, OfAListHasOneEdgeForItsTensorsInOrder) {
  Variable leaf = Leaf(1), made = leaf * 2.0;
  Context ctx(agent());
  auto out = agent()
                 .Async<&Spread>(
                     "bob", ctx,
                     std::vector<Variable>{
                         leaf, Variable(test::Put(Tensor::Ones({2}))), made})
                 .Await();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(SendsOf("alice", ctx),
              ElementsAre(absl::StrCat("to bob: send(accumulate, ",
                                       DrawValue(made), ")")));
  EXPECT_EQ((*out)[0].gradient_edge().index, 0);
  EXPECT_FALSE((*out)[1].gradient_edge().valid());
  EXPECT_EQ((*out)[2].gradient_edge().index, 1);
  EXPECT_EQ((*out)[0].gradient_edge().node, (*out)[2].gradient_edge().node);
}

TEST_P(GraphTest, OfAHandlerThatGivesBackWhatItGot) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable y = *agent().Async<&Same>("bob", ctx, x).Await();
  EXPECT_THAT(SendsOf("bob", ctx),
              ElementsAre("to alice: send(receive 1 from alice)"));
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y * 3.0)).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 3);
}

TEST_P(GraphTest, ReachesWorkersWithoutValuesToo) {
  {
    Context ctx(agent());
    ASSERT_TRUE(agent().Async<&SendsHere>("carol", ctx).Await().ok());
    EXPECT_EQ(OpenContexts(cluster_.at("carol")).size(), 1u);
    EXPECT_TRUE(OpenContexts(cluster_.at("bob")).empty());
  }
  EXPECT_TRUE(cluster_.NoContextsLeft());
}

}  // namespace
}  // namespace baton::dist

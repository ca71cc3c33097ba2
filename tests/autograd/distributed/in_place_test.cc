// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/remote_math.h"

// Values whose tensors were made to be sent without a copy: what the graph
// still needs of them stays here, whatever their receiver writes.
namespace baton::dist {
namespace {

constexpr int64_t kElements = 5000;
constexpr std::chrono::seconds kPatience{30};

// Spoils what it is given once it is used.
Variable Consume(const Variable& x) {
  Variable twice = Variable(ops::Mul(x.tensor(), Tensor::Scalar(2)));
  x.tensor().Fill(-1);
  return twice;
}

class InPlaceValues : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!Info().open) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      ASSERT_TRUE(alice()
                      .Async<&Consume>("bob", Variable(Tensor::Ones({1})))
                      .Await()
                      .ok());
    }
  }
  rpc::Agent& alice() { return cluster_.alice(); }
  rpc::TensorChannelInfo Info() {
    for (const auto& info : alice().GetDebugInfo().tensor_channels) {
      if (info.name == "shared memory" && info.peer == "bob") return info;
    }
    return {};
  }
  Tensor Made(double value) {
    return alice().EmptyFor("bob", {kElements})->Fill(value);
  }
  static bool Is(const Tensor& tensor, double value) {
    return ops::BitEqual(tensor, Tensor::Full({kElements}, value));
  }

  // On the CPU, whose tensors shared memory carries in place.
  testing::TrainingCluster cluster_{2,
                                    [](rpc::Registry& registry) {
                                      AddRemoteMath(registry);
                                      registry.AddFunction<&Consume>();
                                    },
                                    testing::TransportKind::kGrpc,
                                    {{"alice", {}}, {"bob", {}}}};
};

TEST_F(InPlaceValues, TravelSoWhenNobodyElseNeedsThem) {
  Variable x(Made(3));
  const auto got = alice().Async<&Consume>("bob", std::move(x)).Await();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(Is(got->tensor(), 6));
  EXPECT_EQ(Info().sent_in_place, 1u);
}

TEST_F(InPlaceValues, AreCopiedWhileABackwardNeedsThem) {
  Variable x(Made(3));
  Variable w(Tensor::Full({kElements}, 5), true);
  Context ctx(alice());
  const Variable y = x * w;  // the gradient of w is x
  const auto got = alice().Async<&Consume>("bob", ctx, std::move(x)).Await();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(Is(got->tensor(), 6));
  EXPECT_EQ(Info().sent_in_place, 0u);
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_TRUE(Is(ctx.GradientOf(w), 3));
}

TEST_F(InPlaceValues, ThatAreLeavesOfAGraphAreCopied) {
  Variable leaf(Made(3), true);
  Variable moved = leaf;
  Context ctx(alice());
  const auto got =
      alice().Async<&Multiply>("bob", ctx, std::move(moved), leaf).Await();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Info().sent_in_place, 0u);
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*got)).ok());
  EXPECT_TRUE(Is(ctx.GradientOf(leaf), 6));
}

// The graph knows where gradients of the value go; its elements it needs not.
TEST_F(InPlaceValues, KeepTheirEdgeWhenTheirTensorIsGone) {
  Variable w(Tensor::Full({kElements}, 5), true);
  Context ctx(alice());
  Tensor place = Made(0);
  Variable scaled = w * 2.0;
  place.CopyFrom(scaled.tensor());
  Variable sent(std::move(place), scaled.gradient_edge());
  scaled = Variable();
  const auto got = alice()
                       .Async<&Multiply>("bob", ctx, std::move(sent),
                                         Variable(Tensor::Full({kElements}, 7)))
                       .Await();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Info().sent_in_place, 1u);
  EXPECT_TRUE(Is(got->tensor(), 70));
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*got)).ok());
  EXPECT_TRUE(Is(ctx.GradientOf(w), 14));
}

}  // namespace
}  // namespace baton::dist

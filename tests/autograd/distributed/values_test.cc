// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/test_device.h"

// Values of every kind over an edge, and which of them get gradients.
namespace baton::dist {
namespace {

using ::testing::ElementsAre;

Variable Project(const Variable& x, const Variable& weight) {
  return autograd::Matmul(x, weight);
}
Variable AsDouble(const Variable& x) {
  return autograd::Cast(x, DType::kF64) * 2.0;
}
std::vector<Variable> Halves(const Variable& x) {
  return autograd::Split(x * 3.0, x.dim(0) / 2);
}
// a b + c d, of which some may be constants.
Variable Mix(const Variable& a, const Variable& b, const Variable& c,
             const Variable& d) {
  return a * b + c * d;
}
Variable Look(const Variable& table, const Tensor& index) {
  return autograd::Embedding(table, index);
}

class ValuesTest : public ThreeWorkers {
 protected:
  ValuesTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&Project>()
              .AddFunction<&AsDouble>()
              .AddFunction<&Halves>()
              .AddFunction<&Mix>()
              .AddFunction<&Look>();
        }) {}
};
INSTANTIATE_TEST_SUITE_P(, ValuesTest, testing::kTransports,
                         testing::TransportName);

TEST_P(ValuesTest, OfEveryShapeGetAGradientOfTheirShape) {
  for (const Shape& shape : {Shape({}), Shape({1}), Shape({4, 6}),
                             Shape({2, 3, 4}), Shape({1, 2, 1, 2, 3})}) {
    Variable x(test::Put(Tensor::Full(shape, 3)), true);
    Context ctx(agent());
    Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
    EXPECT_EQ(y.shape(), shape);
    ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok()) << shape.ToString();
    Tensor grad = ctx.GradientOf(x);
    EXPECT_TRUE(ops::BitEqual(grad, test::Put(Tensor::Full(shape, 6))));
  }
}

TEST_P(ValuesTest, OfDifferentShapesInOneCall) {
  Variable x(test::Put(Tensor::Full({4, 6}, 2)), true),
      w(test::Put(Tensor::Full({6, 5}, 3)), true);
  Context ctx(agent());
  Variable y = *agent().Async<&Project>("bob", ctx, x, w).Await();
  EXPECT_EQ(y.shape(), Shape({4, 5}));
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y * 0.5)).ok());
  EXPECT_TRUE(
      ops::BitEqual(ctx.GradientOf(x), test::Put(Tensor::Full({4, 6}, 7.5))));
  EXPECT_TRUE(
      ops::BitEqual(ctx.GradientOf(w), test::Put(Tensor::Full({6, 5}, 4))));
}

TEST_P(ValuesTest, BroadcastThereGetsASumOfItsShape) {
  Variable row(test::Put(Tensor::Full({1, 3}, 2)), true),
      grid(test::Put(Tensor::Ones({4, 3})), true);
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("bob", ctx, row, grid).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_TRUE(
      ops::BitEqual(ctx.GradientOf(row), test::Put(Tensor::Full({1, 3}, 4))));
  EXPECT_TRUE(
      ops::BitEqual(ctx.GradientOf(grid), test::Put(Tensor::Full({4, 3}, 2))));
}

TEST_P(ValuesTest, OfEveryFloatingTypeKeepIt) {
  for (DType type : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    Variable x(test::Put(Tensor::Full({3}, 1.5, {.dtype = type})), true);
    Context ctx(agent());
    auto y = agent().Async<&Multiply>("bob", ctx, x, x).Await();
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->dtype(), type);
    absl::Status status =
        ctx.Backward({*y}, {test::Put(Tensor::Ones({3}, {.dtype = type}))});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ctx.GradientOf(x).dtype(), type);
    EXPECT_EQ(First(ctx.GradientOf(x)), 3);
  }
}

TEST_P(ValuesTest, MayChangeTheirTypeThere) {
  Variable x = Leaf(1.5);
  Context ctx(agent());
  Variable y = *agent().Async<&AsDouble>("bob", ctx, x).Await();
  EXPECT_EQ(y.dtype(), DType::kF64);
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(ctx.GradientOf(x).dtype(), DType::kF32);
  EXPECT_EQ(First(ctx.GradientOf(x)), 2);
}

TEST_P(ValuesTest, ThatAreViewsSendTheirGradientToTheirBase) {
  Variable base(test::Put(Tensor::Arange(6, DType::kF32).Reshape({2, 3})),
                true);
  Variable view = autograd::Transpose(base, 0, 1);
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("bob", ctx, view, view).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_THAT(ctx.GradientOf(base).ToVector<float>(),
              ElementsAre(0, 2, 4, 6, 8, 10));
}

TEST_P(ValuesTest, ThatAreConstantsGetNone) {
  Variable a = Leaf(2), b = Leaf(3);
  Variable constant(test::Put(Tensor::Full({2}, 5))),
      other(test::Put(Tensor::Full({2}, 7)));
  Context ctx(agent());
  Variable y = *agent().Async<&Mix>("bob", ctx, a, constant, other, b).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(First(ctx.GradientOf(a)), 5);
  EXPECT_EQ(First(ctx.GradientOf(b)), 7);
  EXPECT_FALSE(ctx.GradientOf(constant).defined());
  EXPECT_FALSE(ctx.GradientOf(other).defined());
  EXPECT_EQ(ctx.Gradients().size(), 2u);
}

TEST_P(ValuesTest, OfWhichOnlyAPartIsUsedGetZerosInTheRest) {
  Variable x(test::Put(Tensor::Ones({4})), true);
  Context ctx(agent());
  auto halves = *agent().Async<&Halves>("bob", ctx, x).Await();
  ASSERT_EQ(halves.size(), 2u);
  ASSERT_TRUE(ctx.Backward(autograd::Sum(halves[1] * 2.0)).ok());
  EXPECT_THAT(ctx.GradientOf(x).ToVector<float>(), ElementsAre(0, 0, 6, 6));
}

TEST_P(ValuesTest, ThatServeSeveralCallsGetTheSumOfTheirGradients) {
  Variable x = Leaf(2);
  Context ctx(agent());
  Variable total = x * 1.0;
  for (const char* worker : {"bob", "carol", "alice", "bob"}) {
    total = total + *agent().Async<&Multiply>(worker, ctx, x, x).Await();
  }
  ASSERT_TRUE(ctx.Backward(autograd::Sum(total)).ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 17);  // 1 + 4 * 2x
}

TEST_P(ValuesTest, LookedUpInARemoteTableGiveItsRowsGradients) {
  Variable table(test::Put(Tensor::Ones({4, 2})), true);
  Context ctx(agent());
  Tensor index = test::Put(Tensor::From<int64_t>({1, 3, 1}));
  Variable rows = *agent().Async<&Look>("bob", ctx, table, index).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(rows)).ok());
  EXPECT_THAT(ctx.GradientOf(table).ToVector<float>(),
              ElementsAre(0, 0, 2, 2, 0, 0, 1, 1));
}

TEST_P(ValuesTest, HaveHooksOnBothEndsOfTheirEdge) {
  Variable x = Leaf(2);
  x.AddHook([](const Tensor& grad) { return ops::MulScalar(grad, 10); });
  Context ctx(agent());
  Variable y = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  int calls = 0;
  y.AddHook([&](const Tensor& grad) {
    ++calls;
    return ops::MulScalar(grad, 3);
  });
  ASSERT_TRUE(ctx.Backward(autograd::Sum(y)).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(First(ctx.GradientOf(x)), 120);  // 3 * 2x * 10
}

TEST_P(ValuesTest, OfTwoLossesMayLieOnWorkersThatShareNothing) {
  Variable x = Leaf(2), y = Leaf(3);
  Context ctx(agent());
  Variable at_bob = *agent().Async<&Multiply>("bob", ctx, x, x).Await();
  Variable at_carol = *agent().Async<&Multiply>("carol", ctx, y, y).Await();
  ASSERT_TRUE(ctx.Backward({autograd::Sum(at_bob), at_carol},
                           {Tensor(), test::Put(Tensor::Full({2}, 10))})
                  .ok());
  EXPECT_EQ(First(ctx.GradientOf(x)), 4);
  EXPECT_EQ(First(ctx.GradientOf(y)), 60);
}

}  // namespace
}  // namespace baton::dist

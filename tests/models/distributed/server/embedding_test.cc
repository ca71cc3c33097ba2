// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/indexing.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "models/nn/embedding.h"
#include "optim/adagrad.h"
#include "optim/sparse_adam.h"
#include "tests/models/distributed/server/embedding_cluster.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::EmbeddingTest;
using testing::Fails;
using testing::IsOk;
using testing::kTableWords;
using testing::kWordClasses;
using testing::kWordWidth;
using testing::LossOf;
using testing::WordStage;

// A trainer whose batch has no use for its rows must not stall the others.
TEST_F(EmbeddingTest, AStepWithoutGradientsIsAPushThatOthersWaitFor) {
  Start(ops::SgdRule{.lr = 1}, Consistency::kBulkSynchronous);
  const auto words = Words();
  const auto other = Join(1, "dave");
  const auto head =
      Module<DenseStage>::Create(cluster_.alice(), "dave", kWordWidth,
                                 kWordClasses, false, 5)
          .Await();
  ASSERT_THAT(head, IsOk());
  Optimizer<optim::Sgd> sgd(cluster_.alice(), {.lr = 0.1}, {head->ref()});
  const Variable x(Tensor::Ones({6, kWordWidth}));
  for (const bool by_optimizer : {true, false}) {
    const Future<Pulled> round = other->PushPull(Filled(1));
    Context ctx(cluster_.alice());
    ASSERT_THAT(words->Forward(ctx, SomeKeys()).Await(), IsOk());
    const auto y = head->Forward(ctx, x).Await();
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(ctx.Backward(LossOf(*y)), IsOk());
    EXPECT_FALSE(round.ready());
    if (by_optimizer) {
      ASSERT_THAT(sgd.Step(ctx), IsOk());
    } else {
      ASSERT_THAT(words->Step(ctx).Await(), IsOk());
    }
    ASSERT_THAT(round.Await(std::chrono::seconds(20)), IsOk());
  }
  // Whoever takes the gradients pushes.
  Context ctx(cluster_.alice());
  ASSERT_THAT(words->Forward(ctx, SomeKeys()).Await(), IsOk());
  const auto y = head->Forward(ctx, x).Await();
  ASSERT_THAT(ctx.Backward(LossOf(*y)), IsOk());
  EXPECT_TRUE(words->TakeGradients(ctx).empty());
  const Future<Pulled> round = other->PushPull(Filled(1));
  ASSERT_THAT(sgd.Step(ctx), IsOk());
  EXPECT_FALSE(round.Await(std::chrono::milliseconds(50)).ok());
  ASSERT_THAT(words->Step(ctx).Await(), IsOk());
  ASSERT_THAT(round.Await(std::chrono::seconds(20)), IsOk());
}

// The embedding at the trainer, what follows at another worker.
template <typename O>
void TrainBeside(rpc::Agent& agent, Embedding& words, nn::Embedding& twin,
                 O& optimizer, const std::function<Tensor()>& keys) {
  auto made = Module<DenseStage>::Create(agent, "dave", kWordWidth,
                                         kWordClasses, false, 5)
                  .Await();
  ASSERT_THAT(made, IsOk());
  const Module<DenseStage> head = *made;
  const auto twin_head =
      std::make_unique<DenseStage>(kWordWidth, kWordClasses, false, 5);
  Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1}, {head.ref()});
  optim::Sgd twin_sgd(twin_head->Parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    const Tensor batch = keys();
    Context ctx(agent);
    const auto rows = words.Forward(ctx, batch).Await();
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(rows->tensor().shape(), Shape({2, 3, kWordWidth}));
    const auto y =
        head.Forward(ctx, autograd::Reshape(*rows, {6, kWordWidth})).Await();
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(ctx.Backward(LossOf(*y)), IsOk());
    ASSERT_THAT(sgd.Step(ctx), IsOk());

    twin.ZeroGrad();
    twin_head->ZeroGrad();
    const Variable twin_y = twin_head->Forward(
        autograd::Reshape(twin.Forward(batch), {6, kWordWidth}));
    LossOf(twin_y).Backward();
    optimizer.Step();
    twin_sgd.Step();
  }
}

template <typename O>
class EmbeddingRule : public EmbeddingTest {};

using Rules = ::testing::Types<optim::Sgd, optim::Adagrad, optim::SparseAdam>;
TYPED_TEST_SUITE(EmbeddingRule, Rules);

TYPED_TEST(EmbeddingRule, TrainsAsALocalSparseEmbeddingDoes) {
  typename TypeParam::Options options;
  options.lr = 0.2;
  this->Start(options);
  Generator generator(1);
  nn::Embedding twin(kTableWords, kWordWidth, generator, {.sparse = true});
  const Tensor before = this->Rows();
  twin.weight().tensor().CopyFrom(before);
  TypeParam optimizer(twin.Parameters(), options);
  TrainBeside(this->cluster_.alice(), *this->Words(), twin, optimizer,
              [&] { return this->SomeKeys(); });
  const auto rows = this->Rows().template ToVector<float>();
  const auto expected = twin.weight().tensor().template ToVector<float>();
  EXPECT_NE(rows, before.ToVector<float>());
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(rows[i], expected[i], 1e-5) << i;
}

// By SGD with a rate of 1, what a row lost is its gradient.
TEST_F(EmbeddingTest, GradientsAreThoseOfDifferences) {
  Start(ops::SgdRule{.lr = 1});
  const auto words = Words();
  const auto head =
      std::make_unique<DenseStage>(kWordWidth, kWordClasses, false, 5);
  const Tensor keys = Tensor::From<int64_t>({2, 7, 2});
  const Tensor before = Rows();
  Context ctx(cluster_.alice());
  const auto looked_up = words->Forward(ctx, keys).Await();
  ASSERT_THAT(looked_up, IsOk());
  ASSERT_THAT(ctx.Backward(LossOf(head->Forward(*looked_up))), IsOk());
  ASSERT_THAT(words->Step(ctx).Await(), IsOk());
  const Tensor after = Rows();
  const auto loss_at = [&](const Tensor& rows) {
    const NoGrad no_grad;
    return LossOf(head->Forward(autograd::Embedding(rows, keys)))
        .tensor()
        .Item();
  };
  constexpr float kStep = 1e-2F;
  for (int64_t i = 0; i < before.numel(); ++i) {
    const Tensor more = before.Clone(), less = before.Clone();
    more.data<float>()[i] += kStep;
    less.data<float>()[i] -= kStep;
    EXPECT_NEAR(before.data<float>()[i] - after.data<float>()[i],
                (loss_at(more) - loss_at(less)) / (2 * kStep), 1e-3)
        << i;
  }
}

TEST_F(EmbeddingTest, AllLookupsOfAContextAreOnePush) {
  Start(ops::SgdRule{.lr = 1});
  const auto words = Words();
  const Tensor before = Rows();
  Context ctx(cluster_.alice());
  const auto one = words->Forward(ctx, Tensor::From<int64_t>({1, 2})).Await();
  const auto two = words->Forward(ctx, Tensor::From<int64_t>({2, 2})).Await();
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  ASSERT_THAT(
      ctx.Backward(autograd::Add(autograd::Sum(*one), autograd::Sum(*two))),
      IsOk());
  const int64_t version = ReportOf(0).version;
  ASSERT_THAT(words->Step(ctx).Await(), IsOk());
  ASSERT_THAT(words->Step(ctx).Await(), IsOk());  // has nothing any more
  EXPECT_EQ(ReportOf(0).version, version + 1);
  const Tensor after = Rows();
  for (const auto& [row, lost] : {std::pair{1, 1.0F}, {2, 3.0F}, {3, 0.0F}}) {
    for (int64_t i = row * kWordWidth; i < (row + 1) * kWordWidth; ++i)
      EXPECT_NEAR(before.data<float>()[i] - after.data<float>()[i], lost, 1e-5);
  }
}

TEST_F(EmbeddingTest, WhatTakesNoGradientPushesNothing) {
  Start(ops::SgdRule{.lr = 1});
  const auto words = Words();
  const Tensor keys = Tensor::From<int64_t>({1, 2});
  const auto plain = words->Forward(keys).Await();
  ASSERT_THAT(plain, IsOk());
  EXPECT_FALSE(plain->requires_grad());
  Context ctx(cluster_.alice());
  ASSERT_THAT(words->Forward(ctx, keys).Await(), IsOk());  // no backward
  ASSERT_THAT(words->Step(ctx).Await(), IsOk());
  EXPECT_EQ(ReportOf(0).version, 0);
  EXPECT_THAT(words->Forward(Tensor::Ones({2})).Await(),
              Fails(absl::StatusCode::kInvalidArgument, "keys i64"));
  EXPECT_THAT(Embedding::Make(Join(std::nullopt), "images"),
              Fails(absl::StatusCode::kNotFound, "no table images"));
}

// The trainer's optimizer has a parameter there, and so steps the rows.
TEST_F(EmbeddingTest, AWorkersEmbeddingIsSteppedByTheTrainersOptimizer) {
  Start(ops::SgdRule{.lr = 0.5});
  auto stage =
      Module<WordStage>::Create(cluster_.alice(), "dave", servers_->directory())
          .Await();
  ASSERT_THAT(stage, IsOk());
  Optimizer<optim::Sgd> sgd(cluster_.alice(), {.lr = 0.5}, {stage->ref()});
  const Tensor keys = Tensor::From<int64_t>({1, 2, 1});
  std::vector<double> losses;
  for (int step = 0; step < 8; ++step) {
    Context ctx(cluster_.alice());
    const auto y = stage->ref().Async<&WordStage::Read>(ctx, keys).Await();
    ASSERT_THAT(y, IsOk());
    const Variable loss = LossOf(*y);
    losses.push_back(loss.tensor().Item());
    ASSERT_THAT(ctx.Backward(loss), IsOk());
    ASSERT_THAT(sgd.Step(ctx), IsOk());
    EXPECT_EQ(ReportOf(0).version, step + 1);
  }
  EXPECT_LT(losses.back(), losses.front() / 4);
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a distributed optimizer has for its parameters holds for rows, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "models/nn/embedding.h"
#include "optim/schedule.h"
#include "tests/models/distributed/server/embedding_cluster.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::EmbeddingTest;
using testing::IsOk;
using testing::kTableWords;
using testing::kWordClasses;
using testing::kWordWidth;
using testing::LossOf;
using testing::WordStage;

constexpr double kRowRate = 0.2, kHeadRate = 0.1;

// What the distributed optimizer and that of one process are given.
struct StepCase {
  const char* name;
  std::function<void(Optimizer<optim::Sgd>&, optim::Sgd&)> set;
};

template <typename Setting>
StepCase BothHave(const char* name, const Setting& set) {
  return {name, [set](Optimizer<optim::Sgd>& remote, optim::Sgd& local) {
            set(remote);
            set(local);
          }};
}

std::vector<StepCase> StepCases() {
  return {BothHave("schedule",
                   [](auto& sgd) {
                     sgd.set_schedule(
                         optim::WarmUp(2, optim::StepLr({.every = 1})));
                   }),
          BothHave("norm", [](auto& sgd) { sgd.set_clip({.norm = 0.05}); }),
          BothHave("value", [](auto& sgd) { sgd.set_clip({.value = 0.01}); }),
          {"loss scale",
           [](auto& remote, auto&) {
             remote.set_loss_scale({.scale = 1024, .interval = 2});
           }},
          {"all", [](auto& remote, auto& local) {
             remote.set_loss_scale({.scale = 512});
             for (const auto& give : {optim::CosineLr({.total = 5})}) {
               remote.set_schedule(give);
               local.set_schedule(give);
             }
             remote.set_clip({.norm = 0.02});
             local.set_clip({.norm = 0.02});
           }}};
}

// Beside one process with an embedding of its own.
class EmbeddingSteps : public EmbeddingTest {
 protected:
  void StartBoth() {
    Start(ops::SgdRule{.lr = kRowRate});
    Generator generator(1);
    twin_ = std::make_unique<nn::Embedding>(
        kTableWords, kWordWidth, generator,
        autograd::EmbeddingOptions{.sparse = true});
    twin_->weight().tensor().CopyFrom(Rows());
    twin_head_ =
        std::make_unique<DenseStage>(kWordWidth, kWordClasses, false, 5);
    local_ = std::make_unique<optim::Sgd>(
        optim::Sgd::Groups{{twin_head_->Parameters(), {.lr = kHeadRate}},
                           {twin_->Parameters(), {.lr = kRowRate}}});
  }
  // Looks some keys up twice.
  void StepLocally(const Tensor& one, const Tensor& other) {
    local_->ZeroGrad();
    LossOf(autograd::Add(twin_head_->Forward(twin_->Forward(one)),
                         twin_head_->Forward(twin_->Forward(other))))
        .Backward();
    local_->Step();
  }
  void ExpectEqualRows(const std::string& of) {
    EXPECT_TRUE(ops::AllClose(Rows(), twin_->weight().tensor(), 1e-5, 1e-6))
        << of;
  }
  static Variable Scaled(const Variable& loss, double scale) {
    return scale == 0 ? loss : loss * scale;
  }

  std::unique_ptr<nn::Embedding> twin_;
  std::unique_ptr<DenseStage> twin_head_;
  std::unique_ptr<optim::Sgd> local_;
};

// The head is at another worker, or at the trainer's, whose local optimizer and
// whose optimizer both see the rows.
TEST_F(EmbeddingSteps, OfTheTrainerAreThoseOfOneProcess) {
  for (const StepCase& each : StepCases()) {
    for (const char* const worker : {"dave", "alice"}) {
      StartBoth();
      const auto words = Words();
      auto head = Module<DenseStage>::Create(cluster_.alice(), worker,
                                             kWordWidth, kWordClasses, false, 5)
                      .Await();
      ASSERT_THAT(head, IsOk());
      Optimizer<optim::Sgd> sgd(cluster_.alice(), {.lr = kHeadRate},
                                {head->ref()});
      each.set(sgd, *local_);
      for (int step = 0; step < 5; ++step) {
        const Tensor one = SomeKeys(), other = SomeKeys();
        Context ctx(cluster_.alice());
        const auto y = head->Forward(ctx, words->Forward(ctx, one)).Await();
        const auto z = head->Forward(ctx, words->Forward(ctx, other)).Await();
        ASSERT_THAT(y, IsOk());
        ASSERT_THAT(z, IsOk());
        ASSERT_THAT(ctx.Backward(Scaled(LossOf(autograd::Add(*y, *z)),
                                        sgd.loss_scale())),
                    IsOk());
        const auto norm = sgd.GradNorm(ctx);
        ASSERT_THAT(norm, IsOk());
        ASSERT_THAT(sgd.Step(ctx), IsOk());
        StepLocally(one, other);
        if (!local_->grad_norm().defined() || sgd.loss_scale() != 0) continue;
        EXPECT_NEAR(*norm, local_->grad_norm().Item(), 1e-5 * *norm);
      }
      ExpectEqualRows(std::string(each.name) + worker);
      const auto state = head->StateDict().Await();
      ASSERT_THAT(state, IsOk());
      for (const auto& [name, tensor] : twin_head_->StateDict()) {
        EXPECT_TRUE(ops::AllClose(state->at(name).To(tensor.device()), tensor,
                                  1e-5, 1e-6))
            << each.name << worker;
      }
    }
  }
}

TEST_F(EmbeddingSteps, OfAWorkerAreThoseOfOneProcess) {
  for (const StepCase& each : StepCases()) {
    StartBoth();
    auto stage = Module<WordStage>::Create(cluster_.alice(), "dave",
                                           servers_->directory())
                     .Await();
    ASSERT_THAT(stage, IsOk());
    auto state = stage->StateDict().Await();
    ASSERT_THAT(state, IsOk());
    ASSERT_THAT(twin_head_->LoadStateDict(*state), IsOk());
    Optimizer<optim::Sgd> sgd(cluster_.alice(), {.lr = kHeadRate},
                              {stage->ref()});
    each.set(sgd, *local_);
    for (int step = 0; step < 4; ++step) {
      const Tensor one = SomeKeys(), other = SomeKeys();
      Context ctx(cluster_.alice());
      const auto y = stage->ref().Async<&WordStage::Read>(ctx, one).Await();
      const auto z = stage->ref().Async<&WordStage::Read>(ctx, other).Await();
      ASSERT_THAT(y, IsOk());
      ASSERT_THAT(z, IsOk());
      ASSERT_THAT(
          ctx.Backward(Scaled(LossOf(autograd::Add(*y, *z)), sgd.loss_scale())),
          IsOk());
      ASSERT_THAT(sgd.Step(ctx), IsOk());
      StepLocally(one, other);
    }
    ExpectEqualRows(each.name);
  }
}

// Nothing is stepped where a gradient overflowed, but the others' round ends.
TEST_F(EmbeddingSteps, AreSkippedWhereAGradientIsNotFinite) {
  Start(ops::SgdRule{.lr = 1}, Consistency::kBulkSynchronous);
  const auto words = Words();
  const auto other = Join(1, "dave");
  auto head = Module<DenseStage>::Create(cluster_.alice(), "dave", kWordWidth,
                                         kWordClasses, false, 5)
                  .Await();
  ASSERT_THAT(head, IsOk());
  Optimizer<optim::Sgd> sgd(cluster_.alice(), {.lr = 1}, {head->ref()});
  sgd.set_loss_scale({.scale = 1e38, .backoff = 1e-36});
  const auto step = [&] {
    const Future<Pulled> round = other->PushPull(Filled(1));
    Context ctx(cluster_.alice());
    const auto y = head->Forward(ctx, words->Forward(ctx, SomeKeys())).Await();
    ASSERT_THAT(y, IsOk());
    const Variable loss = autograd::Sum(*y * 1000.0) * sgd.loss_scale();
    ASSERT_THAT(ctx.Backward(loss), IsOk());
    ASSERT_THAT(sgd.Step(ctx), IsOk());
    ASSERT_THAT(round.Await(std::chrono::seconds(20)), IsOk());
  };
  const auto all = [&] {
    const auto state = head->StateDict().Await();
    EXPECT_THAT(state, IsOk());
    auto values = Rows().ToVector<float>();
    for (const auto& [name, tensor] : *state)
      for (const float value : tensor.ToVector<float>())
        values.push_back(value);
    return values;
  };
  const auto before = all();
  step();
  EXPECT_EQ(all(), before);
  EXPECT_NEAR(sgd.loss_scale(), 100, 1e-6);
  step();
  EXPECT_NEAR(sgd.loss_scale(), 100, 1e-6);
  const auto after = all();
  EXPECT_NE(after, before);
  for (const float value : after) EXPECT_LT(std::abs(value), 1e6);
}

}  // namespace
}  // namespace baton::dist

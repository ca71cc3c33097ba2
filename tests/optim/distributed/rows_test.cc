// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "models/distributed/pipeline.h"
#include "models/nn/embedding.h"
#include "models/nn/loss.h"
#include "optim/any.h"
#include "optim/distributed/optimizer.h"
#include "optim/distributed/registry.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// Gradients of rows at workers.
namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::HasSubstr;

// Rows of a table that most words of a batch have nothing to do with.
class WordStage final : public nn::Module {
 public:
  explicit WordStage(bool sparse)
      : generator_(3),
        words_(MakeModule<nn::Embedding>(
            "words", 50, 4, generator_,
            autograd::EmbeddingOptions{.sparse = sparse})) {}
  Variable Forward(const Variable& ids) override { return words_.Forward(ids); }
  using Exports = rpc::Methods<rpc::kConstructor<bool>, &WordStage::Forward>;

 private:
  Generator generator_;
  nn::Embedding& words_;
};

// What the call's context has for the module's only parameter.
absl::StatusOr<Gradient> GradientAt(rpc::CallContext& call,
                                    const RRef<WordStage>& module) {
  ASSIGN_OR_RETURN(const auto local, module.LocalValue());
  ASSIGN_OR_RETURN(const auto context, ContextOf(call));
  return context->GradientOf(local->Parameters()[0]);
}

void AddRowsTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<WordStage>(registry);
  RegisterModule<DenseStage>(registry);
  RegisterOptimizers(registry);
  registry.AddFunction<&GradientAt>();
}

class RowsAtWorkers : public ::testing::Test {
 protected:
  RowsAtWorkers()
      : cluster_(3, AddRowsTypes),
        words_(*Module<WordStage>::Create(agent(), "bob", true).Await()),
        head_(*Module<DenseStage>::Create(agent(), "carol", 4, 3, false, 7)
                   .Await()),
        local_words_(std::make_unique<WordStage>(true)),
        local_head_(std::make_unique<DenseStage>(4, 3, false, 7)) {
    local_words_->To(test::TestDevice());
    local_head_->To(test::TestDevice());
  }
  rpc::Agent& agent() { return cluster_.alice(); }
  std::vector<Variable> LocalParameters() {
    std::vector<Variable> all = local_words_->Parameters();
    for (const Variable& p : local_head_->Parameters()) all.push_back(p);
    return all;
  }
  void ExpectEqualTables(double tolerance) {
    const auto state = words_.StateDict().Await();
    ASSERT_TRUE(state.ok()) << state.status();
    const Tensor& table = state->at("words.weight");
    const Tensor& here = local_words_->Parameters()[0].tensor();
    EXPECT_TRUE(
        ops::AllClose(table, here.To(table.device()), tolerance, tolerance));
  }

  testing::TrainingCluster cluster_;
  const Module<WordStage> words_;
  const Module<DenseStage> head_;
  const std::unique_ptr<WordStage> local_words_;
  const std::unique_ptr<DenseStage> local_head_;
  const Tensor ids_ = Tensor::From<int64_t>({7, 3, 7, 49, 3, 7, 11, 0});
};

TEST_F(RowsAtWorkers, AreKeptSummedAndSentAsRows) {
  Context ctx(agent());
  for (int pass = 0; pass < 2; ++pass) {
    const auto y = words_.Forward(ctx, ids_).Await();
    ASSERT_TRUE(y.ok()) << y.status();
    const absl::Status status = ctx.Backward(autograd::Sum(*y * *y));
    ASSERT_TRUE(status.ok()) << status;
    const Variable here = local_words_->Forward(test::Put(ids_));
    autograd::Sum(here * here).Backward();
  }
  const auto gradient =
      agent().Async<&GradientAt>("bob", ctx, words_.ref()).Await();
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  ASSERT_TRUE(gradient->is_rows());
  EXPECT_EQ(gradient->shape(), Shape({50, 4}));
  EXPECT_LT(gradient->index().numel(), 2 * ids_.numel() + 1);
  const Tensor expected = local_words_->Parameters()[0].grad();
  EXPECT_TRUE(ops::AllClose(gradient->Dense(), expected.To(gradient->device()),
                            1e-6, 1e-6));
}

// With a dense parameter at another worker, and the norm over both.
TEST_F(RowsAtWorkers, AreSteppedAsTheLocalOnesAre) {
  for (const char* kind : {"sgd", "adagrad", "sparse-adam"}) {
    const auto options = *optim::AnyOptions::Parse(kind);
    Optimizer<optim::Any> remote(agent(), options, {words_.ref(), head_.ref()});
    optim::Any local(LocalParameters(), options);
    remote.set_clip({.norm = 0.5});
    local.set_clip({.norm = 0.5});
    for (int step = 0; step < 3; ++step) {
      Context ctx(agent());
      const auto y = head_.Forward(ctx, words_.Forward(ctx, ids_)).Await();
      ASSERT_TRUE(y.ok()) << y.status();
      ASSERT_TRUE(ctx.Backward(autograd::Sum(*y * *y)).ok());
      const absl::Status status = remote.Step(ctx);
      ASSERT_TRUE(status.ok()) << kind << status;
      local.ZeroGrad();
      const Variable here =
          local_head_->Forward(local_words_->Forward(test::Put(ids_)));
      autograd::Sum(here * here).Backward();
      local.Step();
      ExpectEqualTables(1e-5);
    }
  }
}

TEST_F(RowsAtWorkers, AreRefusedWithTheNameOfTheWorker) {
  Optimizer<optim::Any> adam(agent(), *optim::AnyOptions::Parse("adam"),
                             {words_.ref()});
  Context ctx(agent());
  const auto y = words_.Forward(ctx, ids_).Await();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*y * *y)).ok());
  const absl::Status status = adam.Step(ctx);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bob"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("take SparseAdam"));
}

// Summed over micro-batches, some computed late, by schedules that split
// backwards.
TEST_F(RowsAtWorkers, AreSummedAndSteppedByPipelines) {
  const Tensor targets = Tensor::From<int64_t>({0, 1, 2, 0, 1, 2, 0, 1});
  const auto options = *optim::AnyOptions::Parse("adagrad,lr=0.1");
  for (const char* schedule : {"gpipe", "zb-h1"}) {
    Optimizer<optim::Any> remote(agent(), options, {words_.ref(), head_.ref()});
    optim::Any local(LocalParameters(), options);
    PipelineOptions how;
    how.split_size = 2;
    how.schedule.name = schedule;
    how.loss = Loss::kCrossEntropy;
    const auto pipeline = Pipeline::Make(agent(), how, {words_, head_});
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    for (int step = 0; step < 3; ++step) {
      const auto result = (*pipeline)->Step(remote, ids_, targets);
      ASSERT_TRUE(result.ok()) << result.status();
      local.ZeroGrad();
      nn::CrossEntropy(
          local_head_->Forward(local_words_->Forward(test::Put(ids_))),
          test::Put(targets))
          .Backward();
      ASSERT_TRUE(local_words_->Parameters()[0].gradient().is_rows());
      local.Step();
      ExpectEqualTables(1e-5);
    }
  }
}

}  // namespace
}  // namespace baton::dist

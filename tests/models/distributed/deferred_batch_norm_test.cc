// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::FragileStage;
using testing::IsOk;
using testing::NoisyStage;

constexpr int64_t kNormRows = 14, kNormWidth = 6;

void AddNormTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<FragileStage>(registry);
  RegisterModule<NoisyStage>(registry);
}

// linear, then batch norm, in each of two stages, and one between them.
class DeferredBatchNorm : public ::testing::Test {
 protected:
  DeferredBatchNorm() : cluster_(4, AddNormTypes) {
    Generator generator(11);
    x_ = test::Put(RandNormal({kNormRows, kNormWidth}, generator));
    labels_ = test::Put(RandInt(0, kNormWidth, {kNormRows}, generator));
  }
  rpc::Agent& agent() { return cluster_.alice(); }

  void Make(PipelineOptions options,
            FragileStage::Fault fault = FragileStage::Fault::kNone) {
    pipeline_ = nullptr;
    norms_.clear();
    for (const char* worker : {"bob", "carol"})
      norms_.push_back(
          *Module<NoisyStage>::Create(agent(), worker, kNormWidth, 0.0, 7)
               .Await());
    const auto middle =
        *Module<FragileStage>::Create(agent(), "dave", fault, 1).Await();
    options.deferred_batch_norm = true;
    auto made =
        Pipeline::Make(agent(), options, {norms_[0], middle, norms_[1]});
    ASSERT_THAT(made, IsOk());
    pipeline_ = *std::move(made);
  }
  absl::Status Step() {
    Optimizer<optim::Sgd> sgd(agent(), optim::SgdOptions{.lr = 0.1},
                              {norms_[0].ref(), norms_[1].ref()});
    return pipeline_->Step(sgd, x_, labels_).status();
  }
  // What two modules here have seen: each all rows that came to it as one
  // batch, the second one what micro-batches made of them in the first.
  std::vector<nn::StateMap> StatesOfWholeBatches(int64_t split_size) const {
    NoisyStage parts(kNormWidth, 0.0, 7), first(kNormWidth, 0.0, 7),
        second(kNormWidth, 0.0, 7);
    for (NoisyStage* stage : {&parts, &first, &second})
      stage->To(test::TestDevice());
    const NoGrad no_grad;
    std::vector<Tensor> outputs;
    for (const RowRange& rows : SplitRows(kNormRows, split_size))
      outputs.push_back(
          parts.Forward(x_.Slice(0, rows.begin, rows.end)).tensor());
    first.Forward(x_);
    second.Forward(ops::Cat(outputs, 0));
    return {first.StateDict(), second.StateDict()};
  }
  void ExpectStatistics(const std::vector<nn::StateMap>& wanted) const {
    for (size_t i = 0; i < norms_.size(); ++i) {
      const nn::StateMap got = *norms_[i].StateDict().Await();
      for (const char* name : {"norm.running_mean", "norm.running_var"}) {
        EXPECT_TRUE(ops::AllClose(got.at(name), wanted[i].at(name), 1e-5, 1e-6))
            << i << " " << name;
      }
      EXPECT_EQ(got.at("norm.num_batches_tracked").Item(),
                wanted[i].at("norm.num_batches_tracked").Item());
    }
  }

  testing::TrainingCluster cluster_;
  std::vector<Module<NoisyStage>> norms_;
  std::unique_ptr<Pipeline> pipeline_;
  Tensor x_, labels_;
};

TEST_F(DeferredBatchNorm, StatisticsAreThoseOfTheWholeBatch) {
  for (const int64_t split_size : {14, 7, 4, 3}) {
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(absl::StrCat("parts of ", split_size));
      ASSERT_NO_FATAL_FAILURE(
          Make({.split_size = split_size, .recompute = recompute}));
      ASSERT_THAT(Step(), IsOk());
      ExpectStatistics(StatesOfWholeBatches(split_size));
    }
  }
}

TEST_F(DeferredBatchNorm, EvaluationMovesNothing) {
  ASSERT_NO_FATAL_FAILURE(Make({.split_size = 4}));
  ASSERT_THAT(pipeline_->Evaluate(x_, labels_), IsOk());
  NoisyStage untouched(kNormWidth, 0.0, 7);
  untouched.To(test::TestDevice());
  ExpectStatistics({untouched.StateDict(), untouched.StateDict()});
}

TEST_F(DeferredBatchNorm, ABrokenStepMovesNothing) {
  ASSERT_NO_FATAL_FAILURE(
      Make({.split_size = 4}, FragileStage::Fault::kBackward));
  EXPECT_FALSE(Step().ok());
  NoisyStage untouched(kNormWidth, 0.0, 7);
  untouched.To(test::TestDevice());
  ExpectStatistics({untouched.StateDict(), untouched.StateDict()});
  // What the broken step had put off is gone with it.
  ASSERT_THAT(Step(), IsOk());
  ExpectStatistics(StatesOfWholeBatches(4));
}

}  // namespace
}  // namespace baton::dist

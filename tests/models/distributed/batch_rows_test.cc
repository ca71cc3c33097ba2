// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/tensor.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// Batches whose parts have other numbers of rows are refused by the trainer.
namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::DenseStage;
using testing::Fails;
using testing::IsOk;

void AddBatchRowsTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<DenseStage>(registry);
}

class BatchRows : public ::testing::Test {
 protected:
  BatchRows() : cluster_(3, AddBatchRowsTypes) {
    for (const char* worker : {"bob", "carol"}) {
      stages_.push_back(*Module<DenseStage>::Create(cluster_.alice(), worker,
                                                    int64_t{6}, int64_t{6},
                                                    false, uint64_t{1})
                             .Await());
    }
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        cluster_.alice(), optim::SgdOptions{.lr = 0.1},
        std::vector<ParameterSource>{stages_[0].ref(), stages_[1].ref()});
  }
  void Make(const PipelineOptions& options) {
    pipeline_ =
        *Pipeline::Make(cluster_.alice(), options, {stages_[0], stages_[1]});
  }
  static Tensor Inputs(int64_t rows) {
    return test::Put(Tensor::Ones({rows, 6}));
  }
  static Tensor Labels(int64_t rows) {
    return test::Put(Tensor::Full({rows}, 1, {.dtype = DType::kI64}));
  }
  // Steps of both kinds and an evaluation, none of which may reach a worker.
  std::vector<absl::Status> All(const BatchInputs& inputs,
                                const Tensor& targets) {
    const uint64_t before = Runs();
    const optim::StateDict state = *sgd_->State();
    const Context ctx(cluster_.alice());
    std::vector<absl::Status> all = {
        pipeline_->Step(ctx, inputs, targets).status(),
        pipeline_->Step(*sgd_, inputs, targets).status(),
        pipeline_->Evaluate(inputs, targets).status()};
    EXPECT_EQ(Runs(), before);
    const optim::StateDict after = *sgd_->State();
    for (const auto& [name, value] : after)
      EXPECT_TRUE(ops::BitEqual(value, state.at(name))) << name;
    return all;
  }
  uint64_t Runs() {
    uint64_t runs = 0;
    for (const auto& method : cluster_.alice().GetDebugInfo().methods) {
      if (!method.incoming && method.method == "StageGroup::Run")
        runs += method.calls;
    }
    return runs;
  }

  testing::TrainingCluster cluster_;
  std::vector<Module<DenseStage>> stages_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(BatchRows, OfTargetsThatAreNotThoseOfInputsAreRefusedUnsent) {
  Make({.split_size = 4});
  for (const absl::Status& status : All(Inputs(12), Labels(9))) {
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument,
                              "inputs of a batch have 12 rows"));
    EXPECT_THAT(status,
                Fails(StatusCode::kInvalidArgument, "its targets have 9 rows"));
  }
  for (const absl::Status& status : All(Inputs(12), Tensor::Zeros({})))
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, "have 0 rows"));
  EXPECT_THAT(pipeline_->Step(*sgd_, Inputs(12), Labels(12)), IsOk());
}

TEST_F(BatchRows, ThatDifferBetweenInputsAreRefusedUnsent) {
  Make({.split_size = 4});
  for (const absl::Status& status : All({Inputs(12), Inputs(8)}, Labels(12))) {
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument,
                              "input 0 has 12 rows (shape [12, 6]), input 1 "
                              "has 8 rows"));
  }
}

TEST_F(BatchRows, ThatMicroBatchesDoNotAddUpToAreRefusedUnsent) {
  Make({.micro_batches = {4, 6}});
  const auto all = All(Inputs(12), Labels(9));
  EXPECT_THAT(all[2], Fails(StatusCode::kInvalidArgument, "12 rows"));
  const uint64_t before = Runs();
  EXPECT_THAT(
      pipeline_->Step(*sgd_, Inputs(12), Labels(12)),
      Fails(StatusCode::kInvalidArgument, "4+6 rows do not add up to 12"));
  EXPECT_EQ(Runs(), before);
  EXPECT_THAT(pipeline_->Evaluate(Inputs(12), Labels(12)), IsOk());
}

TEST_F(BatchRows, AStepWithoutTargetsIsRefusedUnsent) {
  Make({});
  const uint64_t before = Runs();
  EXPECT_THAT(pipeline_->Step(*sgd_, Inputs(12), Tensor()),
              Fails(StatusCode::kInvalidArgument, "needs targets"));
  EXPECT_EQ(Runs(), before);
  EXPECT_THAT(pipeline_->Evaluate(Inputs(12)), IsOk());
}

}  // namespace
}  // namespace baton::dist

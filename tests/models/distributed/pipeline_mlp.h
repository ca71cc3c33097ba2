// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/resnet_stage.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {

inline void AddPipelineTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<testing::DenseStage>(registry);
  RegisterModule<testing::FragileStage>(registry);
  RegisterModule<ResNetStage>(registry);
  registry.AddFunction<&testing::GradientsAt<testing::DenseStage>>();
  registry.AddFunction<&testing::GradientsAt<ResNetStage>>();
}

using Modules = std::vector<std::shared_ptr<nn::Module>>;
inline const char* const kWorkers[] = {"bob", "carol", "dave"};

// One process's forward over all stages.
inline Variable ForwardAll(const Modules& modules, const Tensor& x) {
  Variable value(x);
  for (const auto& module : modules) value = module->Forward(value);
  return value;
}

// One process's gradient accumulation over the same micro-batches; the mean
// loss of the batch.
inline double AccumulateLocally(const Modules& modules, const Tensor& x,
                                const Tensor& labels,
                                const std::vector<RowRange>& parts) {
  double sum = 0;
  for (const RowRange& rows : parts) {
    Variable out = ForwardAll(modules, x.Slice(0, rows.begin, rows.end));
    Variable loss = autograd::MulScalar(
        nn::CrossEntropy(out, labels.Slice(0, rows.begin, rows.end)),
        static_cast<double>(rows.size()) / static_cast<double>(x.dim(0)));
    sum += loss.tensor().Item();
    loss.Backward();
  }
  return sum;
}

inline double AccumulateLocally(const Modules& modules, const Tensor& x,
                                const Tensor& labels, int64_t split_size) {
  return AccumulateLocally(modules, x, labels, SplitRows(x.dim(0), split_size));
}

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() : cluster_(4, AddPipelineTypes) {
    testing::FragileStage::ResetGate();
    SetDeterministic(true);
  }
  ~PipelineTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  // An MLP of `stages` layers, here and on the workers, in turn.
  void MakeMlp(int stages) { MakeMlp(*PlaceStages("gpipe", stages, 3)); }
  // One with a layer at each of these.
  void MakeMlp(const std::vector<int>& workers) {
    const int stages = static_cast<int>(workers.size());
    local_.clear();
    remote_.clear();
    for (int i = 0; i < stages; ++i) {
      const int64_t in = i == 0 ? 6 : 8, out = i == stages - 1 ? 4 : 8;
      const bool relu = i < stages - 1;
      const auto seed = static_cast<uint64_t>(i) + 5;
      local_.push_back(
          std::make_unique<testing::DenseStage>(in, out, relu, seed));
      local_.back()->To(test::TestDevice());
      remote_.push_back(*Module<testing::DenseStage>::Create(
                             agent(), kWorkers[workers[static_cast<size_t>(i)]],
                             in, out, relu, seed)
                             .Await());
    }
    Generator generator(11);
    x_ = test::Put(RandNormal({12, 6}, generator));
    labels_ = test::Put(RandInt(0, 4, {12}, generator));
  }
  std::unique_ptr<Pipeline> MakePipeline(const PipelineOptions& options) {
    auto pipeline = Pipeline::Make(
        agent(), options,
        std::vector<StageModule>(remote_.begin(), remote_.end()));
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return *std::move(pipeline);
  }
  // Bit for bit.
  void ExpectGradientsEqual(const Context& ctx) {
    for (size_t i = 0; i < local_.size(); ++i) {
      auto grads = agent()
                       .Async<&testing::GradientsAt<testing::DenseStage>>(
                           remote_[i].owner(), ctx, remote_[i].ref())
                       .Await();
      ASSERT_TRUE(grads.ok()) << grads.status();
      auto parameters = local_[i]->Parameters();
      ASSERT_EQ(grads->size(), parameters.size());
      for (size_t p = 0; p < parameters.size(); ++p) {
        EXPECT_TRUE(ops::BitEqual((*grads)[p], parameters[p].grad()))
            << "stage " << i << ", parameter " << p;
      }
    }
  }
  absl::Status StepFragile(testing::FragileStage::Fault fault,
                           std::chrono::milliseconds timeout) {
    MakeMlp(2);
    auto fragile =
        *Module<testing::FragileStage>::Create(agent(), "dave", fault, 1)
             .Await();
    PipelineOptions options;
    options.split_size = 4;
    options.step_timeout = timeout;
    auto pipeline =
        *Pipeline::Make(agent(), options, {remote_[0], fragile, remote_[1]});
    Context ctx(agent());
    absl::Status status = pipeline->Step(ctx, x_, labels_).status();
    if (fault != testing::FragileStage::Fault::kWait) {
      // The next step is not harmed.
      Context next(agent());
      auto again = pipeline->Step(next, x_, labels_);
      EXPECT_TRUE(again.ok()) << again.status();
    }
    return status;
  }

  testing::TrainingCluster cluster_;
  Modules local_;
  std::vector<Module<testing::DenseStage>> remote_;
  Tensor x_, labels_;
};

}  // namespace baton::dist

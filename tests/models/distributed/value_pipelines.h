// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/value_stages.h"

// Pipelines of stages with several inputs and outputs, and with values that
// skip stages.
namespace baton::dist {

using Variables = std::vector<Variable>;
using Modules = std::vector<std::shared_ptr<nn::Module>>;
inline const char* const kValueWorkers[] = {"bob", "carol", "dave"};
inline constexpr int64_t kRows = 12;

// What one process computes in place of the pipeline.
struct ValueModel {
  int inputs;  // of the batch
  std::vector<testing::MixStage::Options> stages;
  std::vector<StageRoute> routes;
  std::function<Variables(const Modules&, const Values&)> forward;
};

inline Variables RunStage(const Modules& modules, size_t stage,
                          const Variables& values) {
  return modules[stage]->ForwardAll(values);
}

// Three inputs, of which one and an integer one are the third stage's, a skip
// over one stage, one over two of what the next stage uses too, and two
// outputs.
inline ValueModel Forks() {
  return {
      3,
      {{.outputs = 2, .seed = 1},
       {.seed = 2},
       {.inputs = 4, .outputs = 2, .passes_last = true, .seed = 3},
       {.inputs = 4, .outputs = 2, .seed = 4}},
      {{.from = 0, .output = 0, .to = 1, .input = 0},
       {.from = 0, .output = 0, .to = 3, .input = 3},
       {.from = 0, .output = 1, .to = 2, .input = 1},
       {.from = kBatch, .output = 1, .to = 2, .input = 2},
       {.from = kBatch, .output = 2, .to = 2, .input = 3}},
      [](const Modules& modules, const Values& batch) {
        const Variables first = RunStage(modules, 0, {batch[0]});
        const Variables second = RunStage(modules, 1, {first[0]});
        const Variables third =
            RunStage(modules, 2, {second[0], first[1], batch[1], batch[2]});
        return RunStage(modules, 3, {third[0], third[1], third[2], first[0]});
      }};
}

// One value that all other stages use.
inline ValueModel ThreeUsers() {
  return {
      1,
      {{.seed = 1},
       {.seed = 2},
       {.inputs = 2, .seed = 3},
       {.inputs = 2, .outputs = 2, .seed = 4}},
      {{.from = 0, .output = 0, .to = 1, .input = 0},
       {.from = 0, .output = 0, .to = 2, .input = 1},
       {.from = 0, .output = 0, .to = 3, .input = 1}},
      [](const Modules& modules, const Values& batch) {
        const Variables shared = RunStage(modules, 0, {batch[0]});
        const Variables second = RunStage(modules, 1, shared);
        const Variables third = RunStage(modules, 2, {second[0], shared[0]});
        return RunStage(modules, 3, {third[0], shared[0]});
      }};
}

// Two values all along, and one that goes on and that nobody uses.
inline ValueModel Unused() {
  return {2,
          {{.outputs = 3, .seed = 1},
           {.inputs = 3, .outputs = 2, .ignores_last = true, .seed = 2},
           {.inputs = 3, .outputs = 2, .ignores_last = true, .seed = 3}},
          {{.from = kBatch, .output = 1, .to = 2, .input = 2}},
          [](const Modules& modules, const Values& batch) {
            const Variables second =
                RunStage(modules, 1, RunStage(modules, 0, {batch[0]}));
            return RunStage(modules, 2, {second[0], second[1], batch[1]});
          }};
}

inline Modules MakeLocal(const ValueModel& model) {
  Modules modules;
  for (const testing::MixStage::Options& options : model.stages) {
    modules.push_back(std::make_unique<testing::MixStage>(options));
    modules.back()->To(test::TestDevice());
  }
  return modules;
}

// One process's gradient accumulation over the same micro-batches; the mean
// loss of the batch.
inline double Accumulate(const ValueModel& model, const Modules& modules,
                         testing::TwoHeadLoss& loss, const Values& batch,
                         const Tensor& labels, int64_t split_size) {
  double sum = 0;
  for (const RowRange& rows : SplitRows(labels.dim(0), split_size)) {
    Values part;
    for (const Tensor& x : batch)
      part.push_back(x.Slice(0, rows.begin, rows.end));
    const Variable of_part = autograd::MulScalar(
        loss.LossOfAll(model.forward(modules, part),
                       labels.Slice(0, rows.begin, rows.end)),
        static_cast<double>(rows.size()) / static_cast<double>(labels.dim(0)));
    sum += of_part.tensor().Item();
    of_part.Backward();
  }
  return sum;
}

inline void AddValueTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<testing::MixStage>(registry);
  RegisterModule<testing::FragileStage>(registry);
  RegisterLoss<testing::TwoHeadLoss>(registry);
  registry.AddFunction<&testing::GradientsAt<testing::MixStage>>();
  registry.AddFunction<&testing::GradientsAt<testing::TwoHeadLoss>>();
}

class ValuePipelineTest : public ::testing::Test {
 protected:
  ValuePipelineTest() : cluster_(4, AddValueTypes) {
    testing::FragileStage::ResetGate();
    SetDeterministic(true);
    Generator generator(11);
    batch_ = {
        test::Put(RandNormal({kRows, testing::MixStage::kWidth}, generator)),
        test::Put(RandNormal({kRows, testing::MixStage::kWidth}, generator)),
        test::Put(
            RandInt(1, 4, {kRows, testing::MixStage::kWidth}, generator))};
    labels_ =
        test::Put(RandInt(0, testing::MixStage::kWidth, {kRows}, generator));
  }
  ~ValuePipelineTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  Module<testing::MixStage> MakeAt(int worker,
                                   const testing::MixStage::Options& options) {
    return *Module<testing::MixStage>::Create(agent(), kValueWorkers[worker],
                                              options)
                .Await();
  }
  // The model here, and there with a stage at each of these workers.
  void MakeModel(const ValueModel& model, const std::vector<int>& workers) {
    model_ = model;
    local_ = MakeLocal(model);
    local_loss_ = std::make_unique<testing::TwoHeadLoss>(0.5);
    local_loss_->To(test::TestDevice());
    remote_.clear();
    for (size_t i = 0; i < workers.size(); ++i)
      remote_.push_back(MakeAt(workers[i], model.stages[i]));
    loss_ = *Module<testing::TwoHeadLoss>::Create(
                 agent(), kValueWorkers[workers.back()], 0.5)
                 .Await();
  }
  absl::StatusOr<std::unique_ptr<Pipeline>> MakePipeline(
      PipelineOptions options) {
    options.loss = loss_;
    options.routes = model_.routes;
    return Pipeline::Make(
        agent(), options,
        std::vector<StageModule>(remote_.begin(), remote_.end()));
  }
  Values Batch() const {
    return {batch_.begin(), batch_.begin() + model_.inputs};
  }
  double AccumulateHere(int64_t split_size) {
    for (const auto& module : local_) module->ZeroGrad();
    local_loss_->ZeroGrad();
    return Accumulate(model_, local_, *local_loss_, Batch(), labels_,
                      split_size);
  }
  // Bit for bit.
  template <typename M>
  void ExpectEqual(const Context& ctx, const Module<M>& remote,
                   const nn::Module& local, const std::string& what) {
    const auto grads =
        agent()
            .Async<&testing::GradientsAt<M>>(remote.owner(), ctx, remote.ref())
            .Await();
    ASSERT_THAT(grads, testing::IsOk());
    const auto parameters = local.Parameters();
    ASSERT_EQ(grads->size(), parameters.size());
    for (size_t p = 0; p < parameters.size(); ++p) {
      const Tensor expected = parameters[p].grad();
      ASSERT_EQ((*grads)[p].defined(), expected.defined()) << what << " " << p;
      if (!expected.defined()) continue;
      EXPECT_TRUE(ops::BitEqual((*grads)[p], expected)) << what << " " << p;
    }
  }
  void ExpectStepEqual(Pipeline& pipeline, int64_t split_size) {
    Context ctx(agent());
    const auto result = pipeline.Step(ctx, Batch(), labels_);
    ASSERT_THAT(result, testing::IsOk());
    EXPECT_EQ(result->loss, AccumulateHere(split_size));
    for (size_t i = 0; i < remote_.size(); ++i)
      ExpectEqual(ctx, remote_[i], *local_[i], absl::StrCat("stage ", i));
    ExpectEqual(ctx, loss_, *local_loss_, "loss");
  }

  testing::TrainingCluster cluster_;
  ValueModel model_;
  Modules local_;
  std::unique_ptr<testing::TwoHeadLoss> local_loss_;
  std::vector<Module<testing::MixStage>> remote_;
  Module<testing::TwoHeadLoss> loss_;
  Values batch_;
  Tensor labels_;
};

}  // namespace baton::dist

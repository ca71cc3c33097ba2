// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/device_pipeline.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/error_of.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/value_stages.h"

// Stages of several inputs and outputs, and values that skip stages.
namespace baton::dist {
namespace {

using testing::FragileStage;
using testing::GradientsAt;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::MixStage;
using testing::TwoHeadLoss;

using Variables = std::vector<Variable>;
using Modules = std::vector<std::shared_ptr<nn::Module>>;
const char* const kWorkers[] = {"bob", "carol", "dave"};
constexpr int64_t kRows = 12;

// What one process computes in place of the pipeline.
struct Model {
  int inputs;  // of the batch
  std::vector<MixStage::Options> stages;
  std::vector<StageRoute> routes;
  std::function<Variables(const Modules&, const Values&)> forward;
};

Variables Run(const Modules& modules, size_t stage, const Variables& values) {
  return modules[stage]->ForwardAll(values);
}

// Three inputs, of which one and an integer one are the third stage's, a skip
// over one stage, one over two of what the next stage uses too, and two
// outputs.
Model Forks() {
  return {3,
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
            const Variables first = Run(modules, 0, {batch[0]});
            const Variables second = Run(modules, 1, {first[0]});
            const Variables third =
                Run(modules, 2, {second[0], first[1], batch[1], batch[2]});
            return Run(modules, 3, {third[0], third[1], third[2], first[0]});
          }};
}

// One value that all other stages use.
Model ThreeUsers() {
  return {1,
          {{.seed = 1},
           {.seed = 2},
           {.inputs = 2, .seed = 3},
           {.inputs = 2, .outputs = 2, .seed = 4}},
          {{.from = 0, .output = 0, .to = 1, .input = 0},
           {.from = 0, .output = 0, .to = 2, .input = 1},
           {.from = 0, .output = 0, .to = 3, .input = 1}},
          [](const Modules& modules, const Values& batch) {
            const Variables shared = Run(modules, 0, {batch[0]});
            const Variables second = Run(modules, 1, shared);
            const Variables third = Run(modules, 2, {second[0], shared[0]});
            return Run(modules, 3, {third[0], shared[0]});
          }};
}

// Two values all along, and one that goes on and that nobody uses.
Model Unused() {
  return {2,
          {{.outputs = 3, .seed = 1},
           {.inputs = 3, .outputs = 2, .ignores_last = true, .seed = 2},
           {.inputs = 3, .outputs = 2, .ignores_last = true, .seed = 3}},
          {{.from = kBatch, .output = 1, .to = 2, .input = 2}},
          [](const Modules& modules, const Values& batch) {
            const Variables second =
                Run(modules, 1, Run(modules, 0, {batch[0]}));
            return Run(modules, 2, {second[0], second[1], batch[1]});
          }};
}

Modules MakeLocal(const Model& model) {
  Modules modules;
  for (const MixStage::Options& options : model.stages) {
    modules.push_back(MixStage::Make(options));
    modules.back()->To(test::TestDevice());
  }
  return modules;
}

// One process's gradient accumulation over the same micro-batches; the mean
// loss of the batch.
double Accumulate(const Model& model, const Modules& modules, TwoHeadLoss& loss,
                  const Values& batch, const Tensor& labels,
                  int64_t split_size) {
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

void AddTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<MixStage>(registry);
  RegisterModule<FragileStage>(registry);
  RegisterLoss<TwoHeadLoss>(registry);
  registry.AddFunction<&GradientsAt<MixStage>>();
  registry.AddFunction<&GradientsAt<TwoHeadLoss>>();
}

class PipelineValuesTest : public ::testing::Test {
 protected:
  PipelineValuesTest() : cluster_(4, AddTypes) {
    FragileStage::ResetGate();
    SetDeterministic(true);
    Generator generator(11);
    batch_ = {test::Put(RandNormal({kRows, MixStage::kWidth}, generator)),
              test::Put(RandNormal({kRows, MixStage::kWidth}, generator)),
              test::Put(RandInt(1, 4, {kRows, MixStage::kWidth}, generator))};
    labels_ = test::Put(RandInt(0, MixStage::kWidth, {kRows}, generator));
  }
  ~PipelineValuesTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  Module<MixStage> MakeAt(int worker, const MixStage::Options& options) {
    return *Module<MixStage>::Create(agent(), kWorkers[worker], options)
                .Await();
  }
  // The model here, and there with a stage at each of these workers.
  void MakeModel(const Model& model, const std::vector<int>& workers) {
    model_ = model;
    local_ = MakeLocal(model);
    local_loss_ = TwoHeadLoss::Make(0.5);
    local_loss_->To(test::TestDevice());
    remote_.clear();
    for (size_t i = 0; i < workers.size(); ++i)
      remote_.push_back(MakeAt(workers[i], model.stages[i]));
    loss_ = *Module<TwoHeadLoss>::Create(agent(), kWorkers[workers.back()], 0.5)
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
            .Async<&GradientsAt<M>>(remote.owner(), ctx, remote.ref())
            .Await();
    ASSERT_THAT(grads, IsOk());
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
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->loss, AccumulateHere(split_size));
    for (size_t i = 0; i < remote_.size(); ++i)
      ExpectEqual(ctx, remote_[i], *local_[i], absl::StrCat("stage ", i));
    ExpectEqual(ctx, loss_, *local_loss_, "loss");
  }
  std::string RefusalOf(const std::vector<StageRoute>& routes) {
    model_.routes = routes;
    const absl::Status status = MakePipeline({}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  std::string ErrorOfStep(const std::vector<StageRoute>& routes,
                          const BatchInputs& batch) {
    model_.routes = routes;
    const auto pipeline = MakePipeline({.split_size = 4});
    if (!pipeline.ok()) return pipeline.status().ToString();
    Context ctx(agent());
    const absl::Status status = (*pipeline)->Step(ctx, batch, labels_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  void ExpectAKilledWorkerFails(const std::vector<StageModule>& modules,
                                const std::vector<StageRoute>& routes);

  testing::TrainingCluster cluster_;
  Model model_;
  Modules local_;
  std::unique_ptr<TwoHeadLoss> local_loss_;
  std::vector<Module<MixStage>> remote_;
  Module<TwoHeadLoss> loss_;
  Values batch_;
  Tensor labels_;
};

TEST_F(PipelineValuesTest, GradientsEqualAccumulationInOneProcessBitForBit) {
  for (const std::string& schedule : ScheduleNames()) {
    int ran = 0;
    for (const std::vector<int>& workers : {std::vector<int>{0, 0, 0, 0},
                                            {0, 1, 0, 1},
                                            {0, 1, 1, 0},
                                            {0, 0, 1, 2},
                                            {0, 1, 2, 0},
                                            {0, 0, 1, 1}}) {
      for (const Model& model : {Forks(), ThreeUsers()}) {
        for (const int64_t split : {int64_t{5}, kRows}) {
          SCOPED_TRACE(absl::StrCat(schedule, " at ",
                                    absl::StrJoin(workers, ", "), ", parts of ",
                                    split));
          MakeModel(model, workers);
          auto pipeline = MakePipeline({.split_size = split,
                                        .schedule = {.name = schedule},
                                        .windows = WindowsHere()});
          // Some want their stages elsewhere.
          if (absl::IsInvalidArgument(pipeline.status())) continue;
          ASSERT_THAT(pipeline, IsOk());
          for (int step = 0; step < 2; ++step) {
            ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, split));
            ExpectWindowsFromTheSecondStepOn(**pipeline, step);
          }
          ++ran;
        }
      }
    }
    EXPECT_GE(ran, 4) << schedule;
  }
}

TEST_F(PipelineValuesTest, DevicePipelineGivesTheSameGradients) {
  for (const std::string& schedule : ScheduleNames()) {
    for (const Model& model : {Forks(), ThreeUsers()}) {
      model_ = model;
      local_ = MakeLocal(model);
      local_loss_ = TwoHeadLoss::Make(0.5);
      local_loss_->To(test::TestDevice());
      std::vector<DeviceStage> stages;
      for (const auto& module : MakeLocal(model))
        stages.push_back({module, test::TestDevice()});
      const auto pipeline = [&]() -> std::unique_ptr<DevicePipeline> {
        try {
          return std::make_unique<DevicePipeline>(
              stages, DevicePipelineOptions{.split_size = 5,
                                            .schedule = {.name = schedule},
                                            .own_loss = TwoHeadLoss::Make(0.5),
                                            .routes = model.routes});
        } catch (const Error&) {
          return nullptr;  // it wants more stages or devices
        }
      }();
      if (pipeline == nullptr) continue;
      const double expected = AccumulateHere(5);
      EXPECT_NEAR(pipeline->Step(Batch(), labels_).Item(), expected, 1e-6);
      Variables parameters;
      for (const auto& module : local_) {
        for (const Variable& each : module->Parameters())
          parameters.push_back(each);
      }
      parameters.push_back(local_loss_->Parameters()[0]);
      const Variables trained = pipeline->Parameters();
      ASSERT_EQ(trained.size(), parameters.size());
      for (size_t p = 0; p < parameters.size(); ++p) {
        EXPECT_TRUE(ops::BitEqual(trained[p].grad(), parameters[p].grad()))
            << schedule << " " << p;
      }
      const Values outputs = pipeline->Evaluate(Batch());
      ASSERT_EQ(outputs.size(), 2U);
      EXPECT_EQ(outputs[1].dim(0), kRows);
    }
  }
}

TEST_F(PipelineValuesTest, AnOutputThatNobodyUsesHasNoGradient) {
  MakeModel(Unused(), {0, 1, 0});
  for (const bool recompute : {false, true}) {
    auto pipeline = MakePipeline({.split_size = 4, .checkpoint = recompute});
    ASSERT_THAT(pipeline, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 4));
  }
  EXPECT_FALSE(local_[0]->NamedParameters().back().value.grad().defined());
}

TEST_F(PipelineValuesTest, RecomputedActivationsGiveTheSameGradients) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    MakeModel(Forks(), {0, 1, 2, 0});
    auto pipeline = MakePipeline(
        {.split_size = 5, .schedule = {.name = schedule}, .checkpoint = true});
    if (absl::IsInvalidArgument(pipeline.status())) continue;
    ASSERT_THAT(pipeline, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 5));
  }
}

TEST_F(PipelineValuesTest, TrainsAsOneProcessDoes) {
  MakeModel(Forks(), {0, 1, 2, 1});
  auto pipeline = MakePipeline({.split_size = 5});
  ASSERT_THAT(pipeline, IsOk());
  const optim::SgdOptions options{.lr = 0.5, .momentum = 0.9};
  std::vector<ParameterSource> sources;
  for (const auto& module : remote_) sources.push_back(module.ref());
  sources.push_back(loss_.ref());
  Optimizer<optim::Sgd> sgd(agent(), options, sources);
  Variables parameters = local_loss_->Parameters();
  for (const auto& module : local_) {
    for (const Variable& each : module->Parameters())
      parameters.push_back(each);
  }
  optim::Sgd local_sgd(parameters, options);
  for (int step = 0; step < 5; ++step) {
    const auto result = (*pipeline)->Step(sgd, batch_, labels_);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->loss, AccumulateHere(5)) << step;
    local_sgd.Step();
  }
  for (size_t i = 0; i < local_.size(); ++i) {
    const nn::StateMap state = *remote_[i].StateDict().Await();
    for (const auto& [name, tensor] : local_[i]->StateDict())
      EXPECT_TRUE(ops::BitEqual(state.at(name), tensor)) << i << " " << name;
  }
}

TEST_F(PipelineValuesTest, EvaluatesAllOutputs) {
  MakeModel(Forks(), {0, 1, 2, 1});
  auto pipeline = MakePipeline({.split_size = 5});
  ASSERT_THAT(pipeline, IsOk());
  const auto result = (*pipeline)->Evaluate(batch_, labels_);
  ASSERT_THAT(result, IsOk());
  const Variables expected = model_.forward(local_, batch_);
  ASSERT_EQ(result->outputs.size(), 2U);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(
        ops::AllClose(result->outputs[i], expected[i].tensor(), 1e-5, 1e-6));
  EXPECT_NEAR(result->loss,
              local_loss_->LossOfAll(expected, labels_).tensor().Item(), 1e-5);
  EXPECT_EQ(result->accuracy, static_cast<double>(nn::CountCorrect(
                                  expected[0].tensor(), labels_)) /
                                  kRows);
  ASSERT_NO_FATAL_FAILURE(ExpectStepEqual(**pipeline, 5));
}

// As far as the whole batch moves them, for what skips stages as well.
TEST_F(PipelineValuesTest, DeferredStatisticsAreTheWholeBatchs) {
  Model model = Forks();
  model.stages[2].norm = true;
  std::vector<nn::StateMap> states;
  for (const int64_t split : {int64_t{0}, int64_t{5}}) {
    MakeModel(model, {0, 1, 2, 1});
    auto pipeline =
        MakePipeline({.split_size = split, .deferred_batch_norm = true});
    ASSERT_THAT(pipeline, IsOk());
    Context ctx(agent());
    ASSERT_THAT((*pipeline)->Step(ctx, batch_, labels_), IsOk());
    states.push_back(*remote_[2].StateDict().Await());
  }
  for (const char* name : {"norm.running_mean", "norm.running_var"})
    EXPECT_TRUE(
        ops::AllClose(states[1].at(name), states[0].at(name), 1e-5, 1e-6))
        << name;
  EXPECT_EQ(states[1].at("norm.num_batches_tracked").Item(), 1);
}

void PipelineValuesTest::ExpectAKilledWorkerFails(
    const std::vector<StageModule>& modules,
    const std::vector<StageRoute>& routes) {
  auto pipeline =
      Pipeline::Make(agent(), {.split_size = 4, .routes = routes}, modules);
  ASSERT_THAT(pipeline, IsOk());
  std::thread killer([&] {
    EXPECT_THAT(FragileStage::TheGate().reached.future().Await(), IsOk());
    cluster_.Kill("dave");
  });
  Context ctx(agent());
  const absl::Status status =
      (*pipeline)->Step(ctx, batch_[0], labels_).status();
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  killer.join();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
}

TEST_F(PipelineValuesTest, TheDeathOfAWorkerBelowASkipFailsTheStepOfAll) {
  const auto front = MakeAt(0, {.outputs = 2});
  const auto fragile = *Module<FragileStage>::Create(
                            agent(), "dave", FragileStage::Fault::kWait, 1)
                            .Await();
  const auto back = MakeAt(1, {.inputs = 2});
  ASSERT_NO_FATAL_FAILURE(ExpectAKilledWorkerFails(
      {front, fragile, back}, {{.from = 0, .output = 1, .to = 2, .input = 1}}));
}

// To which the stage before sends nothing.
TEST_F(PipelineValuesTest, TheDeathOfASkipsTargetFailsTheStepOfAll) {
  const auto front = MakeAt(0, {.outputs = 2});
  const auto beside = MakeAt(1, {});
  const auto fragile = *Module<FragileStage>::Create(
                            agent(), "dave", FragileStage::Fault::kWait, 1)
                            .Await();
  const auto back = MakeAt(0, {.inputs = 2});
  ASSERT_NO_FATAL_FAILURE(ExpectAKilledWorkerFails(
      {front, beside, fragile, back},
      {{.from = 0, .output = 1, .to = 2, .input = 0},
       {.from = 1, .output = 0, .to = 3, .input = 1}}));
}

TEST_F(PipelineValuesTest, WrongRoutesAreRefused) {
  MakeModel(Unused(), {0, 1, 0});
  EXPECT_THAT(RefusalOf({{.from = 2, .output = 0, .to = 1, .input = 3}}),
              HasSubstr("a route from output 0 of stage 2 to input 3 of stage "
                        "1 leads backwards"));
  EXPECT_THAT(RefusalOf({{.from = 1, .output = 0, .to = 1, .input = 0}}),
              HasSubstr("leads backwards"));
  EXPECT_THAT(RefusalOf({{.from = kBatch, .output = 1, .to = 3, .input = 0}}),
              HasSubstr("a route from input 1 of the batch to input 0 of stage "
                        "3 leads out of the 3 stages"));
  EXPECT_THAT(RefusalOf({{.from = 0, .output = -1, .to = 2, .input = 0}}),
              HasSubstr("has a negative number"));
  EXPECT_THAT(RefusalOf({{.from = 0, .output = 0, .to = 2, .input = 1},
                         {.from = 1, .output = 0, .to = 2, .input = 1}}),
              HasSubstr("is the second to that input"));
}

TEST_F(PipelineValuesTest, ErrorsNameTheStageAndWhatIsWrong) {
  MakeModel(Unused(), {0, 1, 0});
  const StageRoute mask = {.from = kBatch, .output = 1, .to = 2, .input = 2};
  // Without a loss of all outputs.
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], batch_[1], batch_[2]}),
              HasSubstr("stage 0 of 3: forward of micro-batch 0: [mix] takes 1 "
                        "values, got 2"));
  EXPECT_THAT(ErrorOfStep({}, batch_[0]),
              HasSubstr("stage 2 of 3: forward of micro-batch 0: [mix] takes 3 "
                        "values, got 2"));
  EXPECT_THAT(ErrorOfStep({mask}, batch_[0]),
              HasSubstr("a route names the batch's input 1, counted from 0, "
                        "where there is 1"));
  EXPECT_THAT(
      ErrorOfStep({mask, {.from = 0, .output = 5, .to = 2, .input = 3}},
                  {batch_[0], batch_[1]}),
      HasSubstr("stage 0 of 3: forward of micro-batch 0: [route] a route names "
                "output 5, counted from 0, where there are 3"));
  EXPECT_THAT(
      ErrorOfStep({{.from = kBatch, .output = 1, .to = 2, .input = 7}},
                  {batch_[0], batch_[1]}),
      HasSubstr("stage 2 of 3: forward of micro-batch 0: [route] a route names "
                "input 7, counted from 0, where there are 3"));
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], batch_[1].Slice(0, 0, 3)}),
              HasSubstr("the inputs of a batch differ in their rows: input 0 "
                        "has 12 rows (shape [12, 5]), input 1 has 3 rows "
                        "(shape [3, 5])"));
  EXPECT_THAT(ErrorOfStep({mask}, BatchInputs(Values())),
              HasSubstr("at least one input"));
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], Tensor()}),
              HasSubstr("input 1 of the batch has no rows"));
}

TEST_F(PipelineValuesTest, OnlyOwnLossesTakeSeveralOutputs) {
  MakeModel(Unused(), {0, 1, 0});
  auto pipeline = Pipeline::Make(agent(), {.routes = model_.routes},
                                 {remote_[0], remote_[1], remote_[2]});
  ASSERT_THAT(pipeline, IsOk());
  Context ctx(agent());
  const absl::Status status =
      (*pipeline)->Step(ctx, {batch_[0], batch_[1]}, labels_).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 2 of 3: forward of micro-batch 0: [loss] the "
                        "last stage gave 2 outputs"));
}

TEST_F(PipelineValuesTest, DevicePipelineRefusesWrongRoutes) {
  std::vector<DeviceStage> stages;
  for (const auto& module : MakeLocal(Unused()))
    stages.push_back({module, test::TestDevice()});
  EXPECT_THAT(
      test::ErrorOf([&] {
        DevicePipeline(
            stages,
            {.routes = {{.from = 1, .output = 0, .to = 0, .input = 0}}});
      }),
      HasSubstr("leads backwards"));
}

}  // namespace
}  // namespace baton::dist

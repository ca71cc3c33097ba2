// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_replace.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/tensors_of.h"
#include "core/cuda/memory.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "models/nn/graphed_step.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "optim/grad_scaler.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using test::TestDevice;
using ::testing::Each;
using ::testing::HasSubstr;

// Of stage `index`: on a machine with several GPUs each has its own.
Device DeviceOf(size_t index) {
  if (TestDevice().is_cpu()) return TestDevice();
  return Device::Cuda(static_cast<int>(index) % cuda::DeviceCount());
}

std::vector<std::shared_ptr<nn::Module>> Modules(
    const std::vector<std::string>& cuts) {
  auto stages = models::ResNet::MakeStages(
      {.depth = 18, .num_classes = 4, .width = 8, .cifar_stem = true}, cuts);
  std::vector<std::shared_ptr<nn::Module>> modules;
  for (auto& stage : stages.value()) modules.push_back(std::move(stage));
  return modules;
}

DevicePipeline Make(const std::vector<std::string>& cuts,
                    const DevicePipelineOptions& options) {
  std::vector<DeviceStage> stages;
  for (auto& module : Modules(cuts))
    stages.push_back({module, DeviceOf(stages.size())});
  return DevicePipeline(std::move(stages), options);
}

struct Batch {
  Tensor images, labels;
  Batch Slice(const RowRange& part) const {
    return {images.Slice(0, part.begin, part.end),
            labels.Slice(0, part.begin, part.end)};
  }
};

Batch BatchOf(int64_t rows, uint64_t seed = 7) {
  Generator generator(seed);
  const Tensor images = RandNormal({rows, 3, 16, 16}, generator);
  return {images.Contiguous(MemoryFormat::kChannelsLast).To(DeviceOf(0)),
          RandInt(0, 4, {rows}, generator)};
}

// What the pipeline promises: one process that accumulates over micro-batches.
struct Accumulated {
  Batch batch;
  double loss = 0;
  std::vector<Tensor> gradients = {};
};
Accumulated Accumulate(const std::vector<RowRange>& parts) {
  const auto whole = Modules({}).front();
  whole->To(TestDevice());
  const int64_t rows = parts.back().end;
  Accumulated result{BatchOf(rows)};
  for (const RowRange& part : parts) {
    const auto [images, labels] = result.batch.Slice(part);
    const Variable loss = autograd::MulScalar(
        nn::CrossEntropy(whole->Forward(images), labels.To(TestDevice())),
        static_cast<double>(part.size()) / static_cast<double>(rows));
    loss.Backward();
    result.loss += loss.tensor().Item();
  }
  result.gradients = GradientsOf(whole->Parameters());
  return result;
}

void ExpectEqual(const Tensor& a, const Tensor& b, const std::string& what) {
  if (TestDevice().is_cpu()) {
    EXPECT_TRUE(ops::BitEqual(a, b)) << what;
  } else {
    EXPECT_TRUE(
        ops::AllClose(a.To(Device::Cpu()), b.To(Device::Cpu()), 1e-3, 1e-5))
        << what;
  }
}

void ExpectStepsAs(const Accumulated& expected, DevicePipeline pipeline) {
  const Batch& batch = expected.batch;
  for (int repeat = 0; repeat < 2; ++repeat) {  // nothing is left of the first
    EXPECT_NEAR(pipeline.Step(batch.images, batch.labels).Item(), expected.loss,
                1e-5);
    const auto parameters = pipeline.Parameters();
    ASSERT_EQ(parameters.size(), expected.gradients.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      ExpectEqual(parameters[i].grad(), expected.gradients[i],
                  absl::StrCat("parameter ", i));
    }
  }
}

// That their last steps and their modules' states are the same.
void ExpectSame(DevicePipeline& a, DevicePipeline& b, const Batch& batch) {
  const auto ours = a.Parameters(), theirs = b.Parameters();
  for (size_t i = 0; i < ours.size(); ++i)
    ExpectEqual(theirs[i].grad(), ours[i].grad(),
                absl::StrCat("parameter ", i));
  // Running statistics too.
  ExpectEqual(b.Evaluate(batch.images)[0], a.Evaluate(batch.images)[0],
              "outputs");
}

// `train` makes a step and returns its loss.
void ExpectLearns(int steps, const std::function<double()>& train) {
  const double first = train();
  double last = 0;
  for (int step = 0; step < steps; ++step) last = train();
  EXPECT_LT(last, first / 2);
}

struct Case {
  std::vector<std::string> cuts;
  std::string schedule;
  int64_t split_size;
  friend void PrintTo(const Case& of, std::ostream* out) {
    *out << of.cuts.size() + 1 << "_stages_"
         << absl::StrReplaceAll(of.schedule, {{"-", "_"}}) << "_by_"
         << of.split_size;
  }
};
class DevicePipelines : public ::testing::TestWithParam<Case> {};

TEST_P(DevicePipelines, GradientsAreThoseOfOneProcessThatAccumulates) {
  const auto& [cuts, schedule, split_size] = GetParam();
  ExpectStepsAs(Accumulate(SplitRows(7, split_size)),
                Make(cuts, {.split_size = split_size, .schedule = {schedule}}));
}

const std::vector<std::string> kWhole, kTwo = {"layer2"},
                                       kFour = {"stem", "layer1", "layer3"};
INSTANTIATE_TEST_SUITE_P(
    DevicePipeline, DevicePipelines,
    ::testing::Values(Case{kWhole, "gpipe", 7}, Case{kWhole, "gpipe", 3},
                      Case{kTwo, "gpipe", 7}, Case{kTwo, "gpipe", 2},
                      Case{kTwo, "1f1b", 3}, Case{kTwo, "zb-h1", 2},
                      Case{kTwo, "auto", 2}, Case{kTwo, "auto", 7},
                      Case{kFour, "gpipe", 2}, Case{kFour, "1f1b", 2},
                      Case{kFour, "interleaved-1f1b", 2},
                      Case{kFour, "zb-h1", 2}, Case{kFour, "auto", 3}),
    ::testing::PrintToStringParamName());

TEST(DevicePipeline, ForwardsBesideBackwardsChangeNothing) {
  const Accumulated expected = Accumulate(SplitRows(7, 2));
  for (int at_once : {1, 2}) {
    ExpectStepsAs(expected, Make(kTwo, {.split_size = 2,
                                        .schedule = {"auto"},
                                        .at_once = at_once,
                                        .overlap = true}));
  }
}

TEST(DevicePipeline, CopiesAmongTheComputingChangeNothing) {
  const Accumulated expected = Accumulate(SplitRows(7, 2));
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "auto"}) {
    DevicePipelineOptions options = {
        .split_size = 2, .schedule = {schedule}, .copy_streams = false};
    ExpectStepsAs(expected, Make(kFour, options));
    options.at_once = 2;
    options.overlap = true;
    ExpectStepsAs(expected, Make(kFour, options));
  }
}

TEST(DevicePipeline, TakesMicroBatchesOfGivenSizes) {
  const std::vector<int64_t> sizes = {1, 4, 2};
  const Accumulated expected = Accumulate(SplitRows(7, sizes));
  for (const char* schedule : {"gpipe", "auto"}) {
    DevicePipelineOptions options = {.micro_batches = sizes,
                                     .schedule = {schedule}};
    EXPECT_EQ(Make(kTwo, options).MicroBatches(7), 3);
    ExpectStepsAs(expected, Make(kTwo, options));
    options.at_once = 2;
    ExpectStepsAs(expected, Make(kTwo, options));
  }
  // The rows of a test set need not add up.
  DevicePipeline pipeline = Make(kTwo, {.micro_batches = sizes});
  EXPECT_EQ(pipeline.Evaluate(BatchOf(10).images)[0].dim(0), 10);
}

TEST(DevicePipeline, TuningChangesNothingButTheOrder) {
  const Batch batch = BatchOf(7);
  const DevicePipelineOptions options = {.split_size = 2, .schedule = {"auto"}};
  DevicePipeline plain = Make(kFour, options), tuned = Make(kFour, options);
  const PipelineTiming timing = tuned.Tune(batch.images, batch.labels);
  EXPECT_EQ(timing.schedule.name, "auto");
  EXPECT_EQ(timing.schedule.micro_batches(), 4);
  EXPECT_GE(timing.bubble, 0);
  EXPECT_LT(timing.bubble, 1);
  EXPECT_GT(timing.predicted.makespan, 0);
  EXPECT_NEAR(tuned.Step(batch.images, batch.labels).Item(),
              plain.Step(batch.images, batch.labels).Item(), 1e-5);
  ExpectSame(plain, tuned, batch);
}

TEST(DevicePipeline, MicroBatchesAtOnceChangeNothing) {
  const Batch batch = BatchOf(7);
  DevicePipeline one = Make(kTwo, {.split_size = 2});
  DevicePipeline several = Make(kTwo, {.split_size = 2, .at_once = 3});
  for (int step = 0; step < 3; ++step) {
    EXPECT_NEAR(one.Step(batch.images, batch.labels).Item(),
                several.Step(batch.images, batch.labels).Item(), 1e-4);
  }
  ExpectSame(one, several, batch);
}

TEST(DevicePipeline, TrainsWithOneOptimizerForAllDevices) {
  DevicePipeline pipeline = Make(kTwo, {.split_size = 4});
  optim::Sgd sgd(pipeline.Parameters(), {.lr = 0.05, .momentum = 0.9});
  const Batch batch = BatchOf(8);
  ExpectLearns(15, [&] {
    const double loss = pipeline.Step(batch.images, batch.labels).Item();
    sgd.Step();
    return loss;
  });
}

TEST(DevicePipeline, ARecordedStepTrainsAsAPlainOne) {
  std::vector<std::vector<double>> losses(4);
  int64_t replays = 0;
  for (size_t recorded : {0, 1, 2, 3}) {
    DevicePipeline pipeline = Make(kTwo, {.split_size = 2,
                                          .at_once = recorded == 2 ? 2 : 1,
                                          .copy_streams = recorded != 3});
    optim::Sgd sgd(pipeline.Parameters(), {.lr = 0.02, .momentum = 0.9});
    const auto train = [&](const std::vector<Tensor>& batch) {
      const Tensor loss = pipeline.Step(batch[0], batch[1]);
      sgd.Step();
      return std::vector<Tensor>{loss};
    };
    nn::GraphedStep step(train, pipeline.devices(), pipeline.Parameters(),
                         {.warm_up = 2});
    for (int i = 0; i < 6; ++i) {
      const Batch batch = BatchOf(6, static_cast<uint64_t>(i));
      const std::vector<Tensor> tensors = {
          batch.images, batch.labels.To(pipeline.devices().back())};
      const Tensor loss = recorded ? step.Run(tensors)[0] : train(tensors)[0];
      losses[recorded].push_back(loss.Item());
    }
    replays += step.replays();
  }
  for (size_t recorded : {1, 2, 3}) {
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(losses[0][i], losses[recorded][i], 2e-3) << i;
  }
  EXPECT_EQ(replays, TestDevice().is_cuda() ? 12 : 0);
}

TEST(DevicePipeline, LowerPrecisionKeepsNormsAndSumsInF32) {
  DevicePipeline pipeline =
      Make(kTwo, {.split_size = 4, .dtype = DType::kBF16});
  optim::Sgd sgd(pipeline.Parameters(), {.lr = 0.05, .momentum = 0.9});
  const Batch batch = BatchOf(8);
  const Tensor loss = pipeline.Step(batch.images, batch.labels);
  EXPECT_EQ(loss.dtype(), DType::kF32);
  int lowered = 0;
  for (const Variable& parameter : pipeline.Parameters()) {
    EXPECT_EQ(parameter.grad().dtype(), DType::kF32);
    const bool low = parameter.dtype() == DType::kBF16;
    EXPECT_EQ(low, parameter.shape().rank() > 1 || parameter.dim(0) == 4);
    lowered += low;
  }
  EXPECT_GT(lowered, 0);
  ExpectLearns(20, [&] {
    const double loss = pipeline.Step(batch.images, batch.labels).Item();
    sgd.Step();
    return loss;
  });
}

TEST(DevicePipeline, ALossScaleScalesTheGradients) {
  DevicePipeline pipeline = Make(kTwo, {.split_size = 4, .dtype = DType::kF16});
  optim::GradScaler scaler(pipeline.devices(), {.scale = 256});
  optim::Sgd sgd(pipeline.Parameters(), {.lr = 0.05, .momentum = 0.9});
  const Batch batch = BatchOf(8);
  ExpectLearns(20, [&] {
    const Tensor loss =
        pipeline.Step(batch.images, batch.labels,
                      {.loss_scale = scaler.scale(pipeline.devices().back())});
    scaler.Step(sgd);
    return loss.Item();
  });
}

TEST(DevicePipeline, EvaluatesInEvalModeAndLeavesTheMode) {
  DevicePipeline pipeline = Make(kTwo, {.split_size = 3});
  const auto whole = Modules({}).front();
  whole->To(TestDevice());
  whole->Eval();
  const Batch batch = BatchOf(7);
  const Tensor outputs = pipeline.Evaluate(batch.images)[0];
  EXPECT_TRUE(ops::AllClose(
      outputs.To(Device::Cpu()),
      whole->Forward(batch.images).tensor().To(Device::Cpu()), 1e-3, 1e-4));
  pipeline.Step(batch.images, batch.labels);  // batch norm trains again
}

TEST(DevicePipeline, ATraceHasEveryInstructionAndCopy) {
  DevicePipeline pipeline = Make(kTwo, {.split_size = 3});
  const Batch batch = BatchOf(6);
  pipeline.Step(batch.images, batch.labels);
  StepTrace trace(pipeline.devices());
  pipeline.Step(batch.images, batch.labels, {.trace = &trace});
  std::vector<std::string> computed, copied;
  for (const StepTrace::Span& span : trace.Spans()) {
    (span.kind == StepTrace::Kind::kCopy ? copied : computed)
        .push_back(span.name);
    EXPECT_GE(span.begin_ms, 0) << span.name;
    EXPECT_GE(span.end_ms, span.begin_ms) << span.name;
  }
  // A BW in two parts: the gradients, and their addition to the sums.
  EXPECT_THAT(computed, ::testing::UnorderedElementsAre(
                            "0F0", "1F0", "0F1", "1F1", "0BW0", "0BW0", "1BW0",
                            "1BW0", "0BW1", "0BW1", "1BW1", "1BW1"));
  EXPECT_EQ(copied.size(), pipeline.devices().size() > 1 ? 4U : 0U);
  EXPECT_THAT(copied, Each(HasSubstr("copy")));
}

TEST(DevicePipeline, ATraceOfARecordedStepHasTheTimesOfAReplay) {
  if (TestDevice().is_cpu()) {  // where nothing is recorded
    EXPECT_THROW(Graph::Record({TestDevice()}, [] {}), Error);
    return;
  }
  DevicePipeline pipeline = Make(kTwo, {.split_size = 3, .at_once = 2});
  const Batch batch = BatchOf(6);
  const Tensor labels = batch.labels.To(pipeline.devices().back());
  pipeline.Step(batch.images, labels);
  StepTrace trace(pipeline.devices());
  const Graph graph = Graph::Record(pipeline.devices(), [&] {
    pipeline.Step(batch.images, labels, {.trace = &trace});
  });
  for (int replay = 0; replay < 2; ++replay) {
    trace.Begin();
    graph.Replay();
    const auto spans = trace.Spans();
    EXPECT_GE(spans.size(), 12U);
    for (const StepTrace::Span& span : spans) {
      EXPECT_GE(span.end_ms, span.begin_ms) << span.name;
      EXPECT_LT(span.end_ms, 1000) << span.name;
    }
  }
}

// Those of the first layer, which all rows reach as they are.
TEST(DevicePipeline, DeferredStatisticsAreTheWholeBatchs) {
  const Batch batch = BatchOf(6);
  std::vector<Tensor> variances;
  for (const int64_t split_size : {0, 4}) {
    const auto modules = Modules({"layer2"});
    DevicePipeline pipeline(
        {{modules[0], DeviceOf(0)}, {modules[1], DeviceOf(1)}},
        {.split_size = split_size, .deferred_batch_norm = true});
    pipeline.Step(batch.images, batch.labels);
    const nn::StateMap state = modules[0]->StateDict();
    variances.push_back(state.at("bn1.running_var"));
    EXPECT_EQ(state.at("bn1.num_batches_tracked").Item(), 1);
  }
  EXPECT_TRUE(ops::AllClose(variances[1], variances[0], 1e-5, 1e-6));
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/cuda/memory.h"
#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/random.h"
#include "models/distributed/step_trace.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/pipeline_mlp.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"

// Pipelines whose stages are on the devices of one process, the trainer's: on a
// machine with several GPUs each stage has its own, as far as they go.
namespace baton::dist {
namespace {

using test::TestDevice;
using testing::GradientsAt;
using ::testing::HasSubstr;
using testing::IsOk;
using Cuts = std::vector<std::string>;

Device DeviceOf(size_t index) {
  if (TestDevice().is_cpu()) return TestDevice();
  return Device::Cuda(static_cast<int>(index) % cuda::DeviceCount());
}

models::ResNetOptions SmallResNet() {
  return {.depth = 18, .num_classes = 4, .width = 8, .cifar_stem = true};
}

struct ImageBatch {
  Tensor images, labels;
};
ImageBatch ImagesOf(int64_t rows, uint64_t seed = 7) {
  Generator generator(seed);
  const Tensor images = RandNormal({rows, 3, 16, 16}, generator);
  return {images.Contiguous(MemoryFormat::kChannelsLast).To(DeviceOf(0)),
          RandInt(0, 4, {rows}, generator).To(DeviceOf(0))};
}

void ExpectNear(const Tensor& a, const Tensor& b, const std::string& what) {
  if (TestDevice().is_cpu()) {
    EXPECT_TRUE(ops::BitEqual(a, b)) << what;
  } else {
    EXPECT_TRUE(
        ops::AllClose(a.To(Device::Cpu()), b.To(Device::Cpu()), 1e-3, 1e-5))
        << what;
  }
}

class PipelineDevices : public ::testing::Test {
 protected:
  PipelineDevices() : cluster_(1, AddPipelineTypes) {
    SetComputeThreads(1);  // of the process that is compared with
  }
  rpc::Agent& agent() { return cluster_.alice(); }

  std::unique_ptr<Pipeline> Make(const Cuts& cuts, PipelineOptions options,
                                 DType dtype = DType::kF32) {
    options.compute_threads = 1;
    stages_.clear();
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const Placement placement = {.device = DeviceOf(i), .dtype = dtype};
      stages_.push_back(*Module<ResNetStage>::Create(agent(), "alice",
                                                     placement, SmallResNet(),
                                                     cuts, static_cast<int>(i))
                             .Await());
    }
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        agent(), optim::SgdOptions{.lr = 0.02, .momentum = 0.9},
        std::vector<ParameterSource>(stages_.begin(), stages_.end()));
    auto pipeline = Pipeline::Make(
        agent(), options,
        std::vector<StageModule>(stages_.begin(), stages_.end()));
    EXPECT_THAT(pipeline, IsOk());
    return *std::move(pipeline);
  }
  std::vector<Tensor> Gradients(const Context& ctx) {
    std::vector<Tensor> all;
    for (const auto& stage : stages_) {
      const auto of_stage =
          *agent()
               .Async<&GradientsAt<ResNetStage>>("alice", ctx, stage.ref())
               .Await();
      all.insert(all.end(), of_stage.begin(), of_stage.end());
    }
    return all;
  }
  // That its steps are those of one process that accumulates.
  void ExpectStepsOf(Pipeline& pipeline, const std::vector<RowRange>& parts) {
    const ImageBatch batch = ImagesOf(parts.back().end);
    Modules whole = {*ResNetStage::Make(SmallResNet(), {}, 0)};
    whole[0]->To(DeviceOf(0));
    const double loss =
        AccumulateLocally(whole, batch.images, batch.labels, parts);
    const auto parameters = whole[0]->NamedParameters();
    for (int step = 0; step < 2; ++step) {  // nothing is left of the first
      const Context ctx(agent());
      const auto result = pipeline.Step(ctx, batch.images, batch.labels);
      ASSERT_THAT(result, IsOk());
      EXPECT_NEAR(result->loss, loss, 1e-5);
      const std::vector<Tensor> gradients = Gradients(ctx);
      ASSERT_EQ(gradients.size(), parameters.size());
      for (size_t i = 0; i < parameters.size(); ++i)
        ExpectNear(gradients[i], parameters[i].value.grad(),
                   parameters[i].name);
    }
  }
  // The losses of steps by the optimizer, on a batch of its own each.
  std::vector<double> Train(Pipeline& pipeline, int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      const ImageBatch batch = ImagesOf(6, static_cast<uint64_t>(i));
      const auto result = pipeline.Step(*sgd_, batch.images, batch.labels);
      EXPECT_THAT(result, IsOk());
      losses.push_back(result.ok() ? result->loss : 0);
    }
    return losses;
  }
  // What the trace of such a step has.
  std::vector<rpc::TraceEvent> Traced(Pipeline& pipeline) {
    agent().tracer()->Start(
        100'000, rpc::Tracer::Clock::now() + std::chrono::minutes(1));
    Train(pipeline, 1);
    return agent().tracer()->Take().events;
  }

  testing::TrainingCluster cluster_;
  std::vector<Module<ResNetStage>> stages_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
};

const Cuts kWhole, kTwo = {"layer2"}, kFour = {"stem", "layer1", "layer3"};

struct DevicesCase {
  Cuts cuts;
  std::string schedule;
  int64_t split_size;
  friend void PrintTo(const DevicesCase& of, std::ostream* out) {
    *out << of.cuts.size() + 1 << "_stages_"
         << absl::StrReplaceAll(of.schedule, {{"-", "_"}}) << "_by_"
         << of.split_size;
  }
};
class PipelineDevicesBySchedule
    : public PipelineDevices,
      public ::testing::WithParamInterface<DevicesCase> {};

TEST_P(PipelineDevicesBySchedule, GradientsAreThoseOfOneProcess) {
  const auto& [cuts, schedule, split_size] = GetParam();
  for (const bool copy_streams : {true, false}) {
    const auto pipeline = Make(cuts, {.split_size = split_size,
                                      .schedule = {schedule},
                                      .copy_streams = copy_streams});
    ExpectStepsOf(*pipeline, SplitRows(7, split_size));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PipelineDevicesBySchedule,
    ::testing::Values(
        DevicesCase{kWhole, "gpipe", 7}, DevicesCase{kWhole, "gpipe", 3},
        DevicesCase{kTwo, "gpipe", 7}, DevicesCase{kTwo, "1f1b", 3},
        DevicesCase{kTwo, "zb-h1", 2}, DevicesCase{kTwo, "auto", 7},
        DevicesCase{kFour, "gpipe", 2}, DevicesCase{kFour, "1f1b", 2},
        DevicesCase{kFour, "interleaved-1f1b", 2},
        DevicesCase{kFour, "auto", 3}),
    ::testing::PrintToStringParamName());

TEST_F(PipelineDevices, RecordedStepsTrainAsLaunchedOnes) {
  const PipelineOptions launched = {.split_size = 2, .graph = false};
  std::vector<PipelineOptions> all(4, launched);
  for (size_t i = 1; i < all.size(); ++i) all[i].graph = true;
  all[2].at_once = 2;
  all[2].overlap = true;
  all[3].copy_streams = false;
  std::vector<double> expected;
  for (const PipelineOptions& options : all) {
    const auto pipeline = Make(kTwo, options);
    const std::vector<double> losses = Train(*pipeline, 6);
    if (expected.empty()) expected = losses;
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 2e-3) << i;
    const bool recorded = options.graph && TestDevice().is_cuda();
    EXPECT_EQ(pipeline->KernelsReplayed() > 0, recorded)
        << pipeline->WhyNotRecorded();
    EXPECT_THAT(pipeline->Timing(), IsOk());
  }
}

TEST_F(PipelineDevices, AScaledLossIsRecordedToo) {
  const auto pipeline = Make(
      kTwo, {.split_size = 3, .loss_scale = {{.scale = 256}}}, DType::kF16);
  const std::vector<double> losses = Train(*pipeline, 6);
  EXPECT_LT(losses.back(), 10);
  EXPECT_EQ(pipeline->KernelsReplayed() > 0, TestDevice().is_cuda())
      << pipeline->WhyNotRecorded();
}

TEST_F(PipelineDevices, LowerPrecisionKeepsNormsAndSumsInF32) {
  const auto pipeline = Make(kTwo, {.split_size = 4}, DType::kBF16);
  const ImageBatch batch = ImagesOf(8);
  const Context ctx(agent());
  ASSERT_THAT(pipeline->Step(ctx, batch.images, batch.labels), IsOk());
  for (const Tensor& gradient : Gradients(ctx))
    EXPECT_EQ(gradient.dtype(), DType::kF32);
  const nn::StateMap state = *stages_[0].StateDict().Await();
  EXPECT_EQ(state.at("conv1.weight").dtype(), DType::kBF16);
  EXPECT_EQ(state.at("bn1.weight").dtype(), DType::kF32);
}

TEST_F(PipelineDevices, ATraceHasEveryInstructionAndCopy) {
  const auto pipeline = Make(kTwo, {.split_size = 3});
  for (int steps : {0, 4}) {  // launched; recorded, where there are GPUs
    Train(*pipeline, steps);
    std::vector<std::string> computed;
    int copies = 0;
    for (const rpc::TraceEvent& event : Traced(*pipeline)) {
      copies += event.name.starts_with(StepTrace::kCopyOf);
      if (ParseInstruction(event.name)) computed.push_back(event.name);
      EXPECT_GE(event.end_ns, event.begin_ns) << event.name;
    }
    // A BW in two parts: the gradients, and their addition to the sums.
    EXPECT_THAT(computed, ::testing::UnorderedElementsAre(
                              "0F0", "1F0", "0F1", "1F1", "0BW0", "0BW0",
                              "1BW0", "1BW0", "0BW1", "0BW1", "1BW1", "1BW1"));
    EXPECT_EQ(copies, DeviceOf(0) == DeviceOf(1) ? 0 : 4);
  }
}

TEST_F(PipelineDevices, ASchedulesWorkersAreTheDevices) {
  auto pipeline = Make(kFour, {.split_size = 2});
  EXPECT_EQ(Train(*pipeline, 1).size(), 1U);
  const int devices =
      TestDevice().is_cpu() ? 1 : std::min(4, cuda::DeviceCount());
  EXPECT_EQ(pipeline->schedule()->workers.size(), static_cast<size_t>(devices));
  pipeline.reset();
  const PipelineOptions bad[] = {{.schedule = {"none"}},
                                 {.schedule = {"zb-v"}},
                                 {.split_size = -1},
                                 {.at_once = 0}};
  for (const PipelineOptions& options : bad) {
    const auto refused = Pipeline::Make(agent(), options, {stages_[0]});
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  }
}

}  // namespace
}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What each thing that Baton does for a ResNet50 training step is worth: from
// plain launches to two GPUs, one thing more at each step (MSE, SGD, TF32). One
// JSON line for each measurement, then a table of the steps. See
// docs/performance/gpu_pipeline.md.
//   gpu_waterfall --repeat=10 --batch=120 --image=128

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/cuda/memory.h"
#include "core/future.h"
#include "core/gpu_recording.h"
#include "core/ops/indexing.h"
#include "core/precision.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/measurement.h"
#include "models/distributed/join.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/resnet.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/bench/plain/plain_resnet.h"
#include "tools/command_line.h"

ABSL_FLAG(int, repeat, 10, "timed steps of each measurement");
ABSL_FLAG(int64_t, batch, 120, "images of a batch");
ABSL_FLAG(int64_t, image, 128, "height and width of the images");
ABSL_FLAG(std::vector<std::string>, splits,
          std::vector<std::string>({"20", "40", "60"}),
          "images of a micro-batch on two GPUs: the best counts, but for the "
          "last step, which takes the last");
ABSL_FLAG(std::string, device, "cuda",
          "the first GPU, the second is the next one; cpu runs all steps on "
          "the CPU, to try this program out: its figures mean nothing");
ABSL_FLAG(int64_t, width, 64, "channels behind the stem");
ABSL_FLAG(int64_t, classes, 1000, "of the images");

namespace baton::bench {
namespace {

using examples::Measurement;
using Cuts = std::vector<std::string>;

// By how much the first losses of one network may differ: TF32's rounding.
constexpr double kLossTolerance = 0.02;

struct Variant {
  int step;  // of the waterfall
  std::string name;
  bool fused = true;
  MemoryFormat format = MemoryFormat::kChannelsLast;
  bool graph = true;
  Cuts cuts = {};          // none: on one GPU
  int64_t split_size = 0;  // 0: the whole batch
  bool copy_streams = true;
};

std::vector<Variant> Waterfall(const std::vector<int64_t>& splits) {
  std::vector<Variant> variants = {
      {.step = 1,
       .name = "plain launches, NCHW",
       .fused = false,
       .format = MemoryFormat::kContiguous,
       .graph = false},
      {.step = 2, .name = "channels-last", .fused = false, .graph = false},
      {.step = 3, .name = "fused kernels", .graph = false},
      {.step = 4, .name = "one graph"}};
  for (const bool copy_streams : {false, true}) {
    for (const int64_t split : splits) {
      variants.push_back(
          {.step = copy_streams ? 6 : 5,
           .name = copy_streams ? "copy streams" : "two GPUs, cut after layer2",
           .cuts = {"layer2"},
           .split_size = split,
           .copy_streams = copy_streams});
    }
  }
  variants.push_back({.step = 7,
                      .name = "four stages, two a GPU",
                      .cuts = {"layer1.1", "layer2.2", "layer3.3"},
                      .split_size = splits.back()});
  return variants;
}

struct Batch {
  Tensor images, targets;
};

Batch MakeBatch() {
  Generator generator(1);
  const int64_t rows = absl::GetFlag(FLAGS_batch);
  const int64_t side = absl::GetFlag(FLAGS_image);
  const int64_t classes = absl::GetFlag(FLAGS_classes);
  Batch batch;
  batch.images = RandNormal({rows, 3, side, side}, generator);
  batch.targets = ops::OneHot(RandInt(0, classes, {rows}, generator), classes);
  return batch;
}

// A stage of ResNet50, or the whole network as one writes it down at first. All
// begin with the same weights.
class WaterfallStage final : public nn::Module {
 public:
  WaterfallStage(const models::ResNetOptions& options, const Cuts& cuts,
                 int32_t index, bool fused, MemoryFormat format) {
    std::shared_ptr<nn::Module> stage =
        OrThrow(models::ResNet::MakeStage(options, cuts, index));
    if (!fused) {
      Generator generator(0);
      auto plain = std::make_shared<PlainResNet50>(options.num_classes,
                                                   options.width, generator);
      ThrowIfNotOk(plain->LoadStateDict(stage->StateDict()));
      stage = std::move(plain);
    }
    stage->ToFormat(format);
    stage_ = &RegisterModule("stage", std::move(stage));
  }
  Variable Forward(const Variable& x) override { return stage_->Forward(x); }
  using Exports = rpc::Methods<rpc::kConstructor<models::ResNetOptions, Cuts,
                                                 int32_t, bool, MemoryFormat>>;

 private:
  static void ThrowIfNotOk(const absl::Status& status) {
    if (!status.ok()) throw Error(status);
  }
  template <typename T>
  static T OrThrow(absl::StatusOr<T> made) {
    ThrowIfNotOk(made.status());
    return *std::move(made);
  }

  nn::Module* stage_ = nullptr;
};

// One variant, made ready to train: a pipeline in this process.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(
      const Variant& variant, const std::vector<Device>& devices,
      const Batch& batch) {
    auto trainer = std::make_unique<Trainer>();
    ASSIGN_OR_RETURN(trainer->agent_,
                     dist::Alone<WaterfallStage>(devices.front()));
    rpc::Agent& agent = *trainer->agent_;
    const models::ResNetOptions options = {
        .num_classes = absl::GetFlag(FLAGS_classes),
        .width = absl::GetFlag(FLAGS_width)};
    std::vector<dist::StageModule> stages;
    std::vector<dist::ParameterSource> sources;
    for (size_t i = 0; i <= variant.cuts.size(); ++i) {
      ASSIGN_OR_RETURN(
          const auto stage,
          dist::Module<WaterfallStage>::Create(
              agent, agent.self().name,
              dist::Placement{.device = devices[i % devices.size()]}, options,
              variant.cuts, static_cast<int32_t>(i), variant.fused,
              variant.format)
              .Await(kNoLimit));
      stages.emplace_back(stage);
      sources.emplace_back(stage);
    }
    trainer->sgd_ = std::make_unique<dist::Optimizer<optim::Sgd>>(
        agent, optim::SgdOptions{.lr = 0.001}, sources);
    ASSIGN_OR_RETURN(trainer->pipeline_,
                     dist::Pipeline::Make(
                         agent,
                         {.split_size = variant.split_size,
                          .schedule = {variant.cuts.empty() ? "gpipe" : "auto"},
                          .loss = dist::Loss::kMse,
                          .copy_streams = variant.copy_streams,
                          .graph = variant.graph},
                         stages));
    trainer->batch_ = {
        batch.images.Contiguous(variant.format).To(devices.front()),
        batch.targets.To(devices.front())};
    return trainer;
  }

  // A step may begin while another one is under way.
  void Begin() {
    steps_.push_back(
        pipeline_->StepAsync(*sgd_, batch_.images, batch_.targets));
  }
  // The loss of the oldest step, when all devices have ended it.
  absl::StatusOr<double> Await() {
    const auto step = std::move(steps_.front());
    steps_.pop_front();
    ASSIGN_OR_RETURN(const auto result, step.Await(kNoLimit));
    return result.loss;
  }
  absl::StatusOr<double> Step() {
    Begin();
    return Await();
  }
  int warm_up_steps() const { return pipeline_->warm_up_steps(); }

  // In a step; none where they cannot be counted.
  std::optional<int64_t> Kernels(const Variant& variant) {
    if (const int64_t replayed = pipeline_->KernelsReplayed(); replayed > 0)
      return replayed;
    if (variant.graph || batch_.images.device().is_cpu()) return std::nullopt;
    const auto recording = StartGpuRecording(1 << 16);
    if (!recording.ok()) {
      std::fprintf(stderr, "kernels are not counted: %s\n",
                   recording.status().ToString().c_str());
      return std::nullopt;
    }
    Step().IgnoreError();
    const auto activities = (*recording)->Take().activities;
    return std::count_if(activities.begin(), activities.end(),
                         [](const GpuActivity& one) { return one.bytes == 0; });
  }

 private:
  std::unique_ptr<rpc::Agent> agent_;
  std::unique_ptr<dist::Optimizer<optim::Sgd>> sgd_;
  std::unique_ptr<dist::Pipeline> pipeline_;
  Batch batch_;
  std::deque<Future<dist::Pipeline::StepResult>> steps_;
};

struct Measured {
  Variant variant;
  Measurement measurement;
  double first_loss = 0;
  std::optional<int64_t> kernels;
};

void AddDetails(const std::vector<Device>& devices, Measured& measured) {
  const Variant& variant = measured.variant;
  auto& details = measured.measurement.details;
  details = {{"step", int64_t{variant.step}},
             {"device", devices.front().ToString()},
             {"batch", absl::GetFlag(FLAGS_batch)},
             {"image", absl::GetFlag(FLAGS_image)},
             {"fused", variant.fused},
             {"channels_last", variant.format == MemoryFormat::kChannelsLast},
             {"graph", variant.graph},
             {"cuts", absl::StrJoin(variant.cuts, ",")},
             {"copy_streams", variant.copy_streams},
             {"first_loss", measured.first_loss}};
  if (measured.kernels) details.push_back({"kernels", *measured.kernels});
}

absl::StatusOr<Measured> Measure(const Variant& variant,
                                 const std::vector<Device>& devices,
                                 const Batch& batch) {
  using Clock = std::chrono::steady_clock;
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Make(variant, devices, batch));
  Measured measured;
  measured.variant = variant;
  Measurement& result = measured.measurement;
  result.variant = variant.name;
  result.split_size = variant.split_size;
  result.items = batch.images.dim(0);
  ASSIGN_OR_RETURN(measured.first_loss, trainer->Step());
  for (int i = 1; i < trainer->warm_up_steps(); ++i)
    RETURN_IF_ERROR(trainer->Step().status());
  const int repeats = absl::GetFlag(FLAGS_repeat);
  Clock::time_point begin = Clock::now();
  trainer->Begin();
  for (int i = 0; i < repeats; ++i) {
    if (i + 1 < repeats) trainer->Begin();
    ASSIGN_OR_RETURN(result.loss, trainer->Await());
    const Clock::time_point end = Clock::now();
    result.seconds.push_back(
        std::chrono::duration<double>(end - begin).count());
    begin = end;
  }
  measured.kernels = trainer->Kernels(variant);
  AddDetails(devices, measured);
  return measured;
}

// Equal micro-batches of one network begin with equal losses.
absl::Status CheckLosses(const std::vector<Measured>& all) {
  std::map<int64_t, double> expected;  // by split size
  for (const Measured& one : all) {
    const double loss =
        expected.emplace(one.variant.split_size, one.first_loss).first->second;
    if (std::abs(one.first_loss - loss) <= kLossTolerance * std::abs(loss))
      continue;
    return absl::InternalError(absl::StrCat(
        "step ", one.variant.step, " (", one.variant.name,
        ") begins with a loss of ", one.first_loss, " and not ", loss));
  }
  return absl::OkStatus();
}

// The best measurement of each step, in order.
std::vector<const Measured*> BestOfSteps(const std::vector<Measured>& all) {
  const auto rate = [](const Measured& one) {
    return Summarize(one.measurement).items_per_s;
  };
  std::map<int, const Measured*> best;
  for (const Measured& one : all) {
    const Measured*& of_step = best[one.variant.step];
    if (of_step == nullptr || rate(one) > rate(*of_step)) of_step = &one;
  }
  std::vector<const Measured*> steps;
  for (const auto& [step, measured] : best) steps.push_back(measured);
  return steps;
}

void PrintTable(const std::vector<Measured>& all) {
  std::printf("\n%-28s %6s %9s %9s %8s %9s %9s %9s\n", "step", "split", "ms",
              "images/s", "kernels", "x before", "x first", "loss");
  double first = 0, before = 0;
  for (const Measured* one : BestOfSteps(all)) {
    const auto summary = Summarize(one->measurement);
    const double rate = summary.items_per_s;
    if (first == 0) first = before = rate;
    std::printf("%-28s %6s %9.3f %9.0f %8s %9.2f %9.2f %9.5f\n",
                absl::StrCat(one->variant.step, " ", one->variant.name).c_str(),
                one->variant.split_size == 0
                    ? ""
                    : absl::StrCat(one->variant.split_size).c_str(),
                1e3 * summary.median_s, rate,
                one->kernels ? absl::StrCat(*one->kernels).c_str() : "",
                rate / before, rate / first, one->measurement.loss.value_or(0));
    before = rate;
  }
}

absl::StatusOr<std::vector<int64_t>> ReadSplits() {
  std::vector<int64_t> splits;
  for (const std::string& text : absl::GetFlag(FLAGS_splits)) {
    int64_t split = 0;
    if (!absl::SimpleAtoi(text, &split) || split < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("--splits takes numbers from 1 on, not '", text, "'"));
    splits.push_back(split);
  }
  if (splits.empty())
    return absl::InvalidArgumentError("--splits takes at least one number");
  if (absl::GetFlag(FLAGS_repeat) < 1 || absl::GetFlag(FLAGS_batch) < 1)
    return absl::InvalidArgumentError("--repeat and --batch take 1 and up");
  return splits;
}

// The first device and, where it is there, the second.
absl::StatusOr<std::vector<Device>> FindDevices() {
  ASSIGN_OR_RETURN(const Device first,
                   Device::Parse(absl::GetFlag(FLAGS_device)));
  if (first.is_cpu()) return std::vector<Device>{first, first};
  // Says what is missing.
  RETURN_IF_ERROR(CatchErrors([&] { Tensor::Empty({1}, {.device = first}); }));
  std::vector<Device> devices = {first};
  if (first.index() + 1 < cuda::DeviceCount())
    devices.push_back(Device::Cuda(first.index() + 1));
  return devices;
}

absl::Status Main() {
  ASSIGN_OR_RETURN(const std::vector<int64_t> splits, ReadSplits());
  ASSIGN_OR_RETURN(const std::vector<Device> devices, FindDevices());
  AllowTf32(true);
  const Batch batch = MakeBatch();
  std::vector<Measured> all;
  for (const Variant& variant : Waterfall(splits)) {
    if (!variant.cuts.empty() && devices.size() < 2) continue;
    ASSIGN_OR_RETURN(Measured measured, Measure(variant, devices, batch));
    std::printf("%s\n", ToJsonLine(measured.measurement).c_str());
    std::fflush(stdout);
    all.push_back(std::move(measured));
  }
  PrintTable(all);
  if (devices.size() < 2)
    std::printf("steps 5 to 7 need two GPUs: from %s on there is one\n",
                devices.front().ToString().c_str());
  return CheckLosses(all);
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(
      argc, argv,
      "Measures ResNet50's training step with one of Baton's means more at "
      "each step.");
  return baton::tools::ExitCode(baton::CatchErrors(baton::bench::Main));
}

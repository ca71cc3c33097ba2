// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/device_resnet.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "core/storage.h"
#include "tools/output_file.h"
#include "tools/view/merged_trace.h"

namespace baton::examples {
namespace {

// These steps suffice to choose algorithms and, with a graph, to replay it once
// or twice.
constexpr int kWarmUp = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceResNet>> DeviceResNet::Make(
    const Settings& settings, const Machine& machine, const Variant& variant) {
  ASSIGN_OR_RETURN(auto modules, models::ResNet::MakeStages(
                                     settings.model,
                                     variant.cut ? settings.cuts
                                                 : std::vector<std::string>()));
  const dist::ScheduleChoice usual;
  const auto& schedule = variant.pipelined() ? settings.schedule : usual;
  ASSIGN_OR_RETURN(const std::vector<int> placed,
                   dist::PlaceStages(schedule, static_cast<int>(modules.size()),
                                     static_cast<int>(machine.devices.size())));
  std::vector<dist::DeviceStage> stages;
  for (auto& module : modules) {
    const auto device = static_cast<size_t>(placed[stages.size()]);
    stages.push_back({std::move(module), machine.devices[device]});
  }
  std::unique_ptr<DeviceResNet> model;
  RETURN_IF_ERROR(CatchErrors([&] {
    for (const dist::DeviceStage& stage : stages) {
      if (stage.device.is_cuda()) ResetPeakGpuMemory(stage.device);
    }
    model.reset(new DeviceResNet(
        dist::DevicePipeline(
            std::move(stages),
            {.split_size = variant.split_size,
             .micro_batches = variant.micro_batches,
             .schedule = schedule,
             .loss = settings.loss,
             .deferred_batch_norm = settings.deferred_batch_norm,
             .at_once = settings.at_once,
             .overlap = settings.overlap,
             .dtype = machine.dtype}),
        settings, machine.graph));
  }));
  return model;
}

DeviceResNet::DeviceResNet(dist::DevicePipeline pipeline,
                           const Settings& settings, bool graph)
    : pipeline_(std::move(pipeline)),
      optimizer_(pipeline_.Parameters(), settings.stepping.optimizer) {
  micro_batches_ = pipeline_.MicroBatches(settings.batch);
  if (pipeline_.options().dtype == DType::kF16) {
    scaler_ = std::make_unique<optim::GradScaler>(pipeline_.devices(),
                                                  optim::GradScalerOptions());
  }
  to_tune_ = micro_batches_ > 1 && pipeline_.num_stages() > 1;
  if (!graph) return;
  step_ = std::make_unique<nn::GraphedStep>(
      [this](const std::vector<Tensor>& batch) {
        return std::vector<Tensor>{PlainStep({batch[0], batch[1]})};
      },
      pipeline_.devices(), pipeline_.Parameters(),
      nn::RecordingOptions{.warm_up = kWarmUp});
}

Tensor DeviceResNet::PlainStep(const TrainingBatch& batch,
                               dist::StepTrace* trace) {
  const Device last = pipeline_.devices().back();
  Tensor loss =
      pipeline_.Step(batch.inputs, batch.targets,
                     {.loss_scale = scaler_ ? scaler_->scale(last) : Tensor(),
                      .trace = trace});
  scaler_ ? scaler_->Step(optimizer_) : optimizer_.Step();
  return loss;
}

absl::StatusOr<TrainingBatch> DeviceResNet::Place(const TrainingBatch& batch) {
  TrainingBatch placed;
  RETURN_IF_ERROR(CatchErrors([&] {
    placed = {batch.inputs.To(pipeline_.devices().front()),
              batch.targets.To(pipeline_.devices().back())};
  }));
  return placed;
}

absl::StatusOr<double> DeviceResNet::TrainStep(const TrainingBatch& batch) {
  double loss = 0;
  RETURN_IF_ERROR(CatchErrors([&] {
    if (std::exchange(to_tune_, false))
      timing_ = pipeline_.Tune(batch.inputs, batch.targets);
    const Tensor result =
        step_ ? step_->Run({batch.inputs, batch.targets})[0] : PlainStep(batch);
    for (Device device : pipeline_.devices()) Synchronize(device);
    loss = result.Item();
  }));
  return loss;
}

int DeviceResNet::warm_up_steps() const {
  return step_ == nullptr ? kWarmUp : kWarmUp + 2;
}

std::vector<Detail> DeviceResNet::Details() const {
  size_t peak = 0;
  for (Device device : pipeline_.devices()) {
    peak = std::max(peak, device.is_cuda() ? GpuMemoryStats(device).peak_bytes
                                           : CpuMemoryStats().peak_bytes);
  }
  std::vector<Detail> details = {
      {"peak_memory_mib", static_cast<double>(peak) / (1 << 20)}};
  if (step_ != nullptr && step_->replays() > 0) {
    details.push_back({"kernels_per_step", step_->kernels()});
    details.push_back(
        {"kernels_per_micro_batch", static_cast<double>(step_->kernels()) /
                                        static_cast<double>(micro_batches_)});
  }
  if (timing_) {
    const auto figures = DetailsOf(*timing_);
    details.insert(details.end(), figures.begin(), figures.end());
  }
  return details;
}

const dist::Schedule* DeviceResNet::schedule() const {
  return timing_ ? &timing_->schedule : nullptr;
}

absl::StatusOr<std::string> DeviceResNet::TraceStep(const TrainingBatch& batch,
                                                    const std::string& path) {
  std::vector<dist::StepTrace::Span> spans;
  tools::WorkerTrace written;
  written.worker.name = "devices";
  RETURN_IF_ERROR(CatchErrors([&] {
    dist::StepTrace trace(pipeline_.devices());
    if (step_ == nullptr) {
      PlainStep(batch, &trace);
    } else {
      const Graph graph =
          Graph::Record(pipeline_.devices(), [&] { PlainStep(batch, &trace); });
      graph.Replay();
      trace.Begin();
      graph.Replay();
    }
    spans = trace.Spans();
    written.log = trace.Log();
  }));
  RETURN_IF_ERROR(tools::WriteOutput(path, tools::MergedTrace({written})));
  double copied = 0;
  for (const auto& span : spans) {
    if (span.kind == dist::StepTrace::Kind::kCopy)
      copied += span.end_ms - span.begin_ms;
  }
  return absl::StrFormat(
      "copies took %.3f ms of the step, %.0f%% of it beside computing; see %s",
      copied, 100 * dist::OverlappedShare(spans), path);
}

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/device_resnet.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "core/status.h"
#include "core/storage.h"
#include "models/distributed/join.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/step_trace.h"
#include "tools/output_file.h"
#include "tools/view/merged_trace.h"

namespace baton::examples {
namespace {

// Bounds of a trace of one step.
constexpr size_t kMostEvents = 1'000'000;
constexpr std::chrono::minutes kLongestTrace{30};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceResNet>> DeviceResNet::Make(
    const Settings& settings, const Machine& machine, const Variant& variant) {
  std::unique_ptr<DeviceResNet> made;
  RETURN_IF_ERROR(CatchErrors([&] {
    for (const Device device : machine.devices)
      if (device.is_cuda()) ResetPeakGpuMemory(device);
    const auto parts = dist::SplitRows(settings.batch, variant.split_size,
                                       variant.micro_batches);
    made.reset(
        new DeviceResNet(machine.devices, static_cast<int64_t>(parts.size())));
  }));
  ASSIGN_OR_RETURN(made->agent_,
                   dist::Alone(machine.devices.front(), machine.dtype));
  Settings here = settings;
  here.graph = machine.graph;
  ASSIGN_OR_RETURN(
      made->model_,
      MakeRemoteResNet(
          *made->agent_, {made->agent_->self().name}, here,
          {.cuts = variant.cut ? settings.cuts : std::vector<std::string>(),
           .split_size = variant.split_size,
           .micro_batches = variant.micro_batches,
           .compute_threads = machine.threads_per_device,
           .local = true,
           .devices = machine.devices}));
  return made;
}

std::vector<Detail> DeviceResNet::Details() const {
  size_t peak = 0;
  for (Device device : devices_) {
    peak = std::max(peak, device.is_cuda() ? GpuMemoryStats(device).peak_bytes
                                           : CpuMemoryStats().peak_bytes);
  }
  std::vector<Detail> details = {
      {"peak_memory_mib", static_cast<double>(peak) / (1 << 20)}};
  if (const int64_t kernels = model_->KernelsReplayed(); kernels > 0) {
    details.push_back(
        {"kernels_per_micro_batch",
         static_cast<double>(kernels) / static_cast<double>(micro_batches_)});
  }
  for (Detail& figure : model_->Details()) details.push_back(std::move(figure));
  return details;
}

absl::StatusOr<std::string> DeviceResNet::TraceStep(const TrainingBatch& batch,
                                                    const std::string& path) {
  rpc::Tracer& tracer = *agent_->tracer();
  tracer.Start(kMostEvents, rpc::Tracer::Clock::now() + kLongestTrace);
  const absl::Status trained = TrainStep(batch).status();
  tools::WorkerTrace written;
  written.worker.name = "devices";
  written.log = tracer.Take();
  RETURN_IF_ERROR(trained);
  RETURN_IF_ERROR(tools::WriteOutput(path, tools::MergedTrace({written})));
  const dist::CopiesTime copies = dist::CopiesOf(written.log);
  return absl::StrFormat(
      "copies took %.3f ms of the step, %.0f%% of it beside computing; see %s",
      copies.ms, 100 * copies.overlapped, path);
}

}  // namespace baton::examples

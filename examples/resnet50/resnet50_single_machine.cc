// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// ResNet50 on the devices of one machine, in one process: whole, split and
// pipelined. On the CPU a device is an equal share of the cores.
//   resnet50_single_machine --batch=120 --image=128 --split_size=12,20,40

#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/device.h"
#include "core/parallel.h"
#include "core/status.h"
#include "examples/resnet50/device_cluster.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/local_resnet.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/settings.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, device, "cpu", "where to compute: cpu");
ABSL_FLAG(int, threads_per_device, 0,
          "compute threads of one device; 0: an equal share of the cores");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "Trains a ResNet in this one process on synthetic images: whole on one\n"
    "device, split over the devices, and pipelined through them.";

absl::Status CheckDevice() {
  ASSIGN_OR_RETURN(const Device device,
                   Device::Parse(absl::GetFlag(FLAGS_device)));
  if (device.is_cpu()) return absl::OkStatus();
  // Says what is missing for a GPU.
  return CatchErrors([&] { Tensor::Empty({1}, {.device = device}); });
}

absl::StatusOr<int> ThreadsPerDevice(int devices) {
  const int threads = absl::GetFlag(FLAGS_threads_per_device);
  if (threads < 0) {
    return absl::InvalidArgumentError(
        "--threads_per_device must not be negative");
  }
  if (threads > 0) return threads;
  return std::max(1, ComputeThreads() / devices);
}

absl::StatusOr<std::vector<Measurement>> Measure(const Settings& settings,
                                                 int threads,
                                                 DeviceCluster& cluster) {
  using Result = absl::StatusOr<std::unique_ptr<Trainable>>;
  return RunExperiment(settings, [&](const Variant& variant) -> Result {
    if (variant.split_size == 0) {
      return LocalResNet::Make(settings, variant.cut, threads);
    }
    return RemoteResNet::Make(cluster.trainer(), cluster.workers(), settings,
                              {.cuts = settings.cuts,
                               .split_size = variant.split_size,
                               .compute_threads = threads});
  });
}

absl::Status Main() {
  ASSIGN_OR_RETURN(const Settings settings, SettingsFromFlags());
  if (!settings.data.empty() || !settings.checkpoint.empty()) {
    return absl::InvalidArgumentError(
        "--data and --checkpoint are for resnet50_pipeline: this program "
        "measures on synthetic images");
  }
  RETURN_IF_ERROR(CheckDevice());
  ASSIGN_OR_RETURN(const int threads, ThreadsPerDevice(settings.stages()));
  ASSIGN_OR_RETURN(const auto cluster, DeviceCluster::Make(settings.stages()));
  const auto measurements = Measure(settings, threads, *cluster);
  const absl::Status shutdown = cluster->Shutdown();
  RETURN_IF_ERROR(measurements.status());
  RETURN_IF_ERROR(shutdown);
  return Report(settings,
                absl::StrCat("ResNet", settings.model.depth, ", batches of ",
                             settings.batch, " images of ", settings.image, "x",
                             settings.image, ", ", settings.stages(),
                             " devices of ", threads, " threads, one process"),
                *measurements);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

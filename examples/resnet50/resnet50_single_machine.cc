// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a ResNet50 on the devices of one machine, in one process: whole, split
// and pipelined. On the CPU, a device is an equal share of the cores.
//   resnet50_single_machine --batch=120 --image=128 --split_size=12,20,40
//   resnet50_single_machine --device=cuda --dtype=bf16 --repeat=10

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/resnet50/device_resnet.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/local_resnet.h"
#include "examples/resnet50/machine.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/settings.h"
#include "examples/support/device_cluster.h"
#include "examples/support/report.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "Trains a ResNet in this one process on synthetic images: whole on one\n"
    "device, split over the devices, and pipelined through them.\n"
    "Default: --optimizer=sgd --lr=0.001.";

using Result = absl::StatusOr<std::unique_ptr<Trainable>>;
using Measurements = absl::StatusOr<std::vector<Measurement>>;

std::vector<Detail> DetailsOf(const Settings& settings,
                              const Machine& machine) {
  return {{"device", machine.devices.front().ToString()},
          {"dtype", machine.dtype_name},
          {"graph", machine.graph},
          {"schedule", settings.schedule.name},
          {"at_once", int64_t{settings.at_once}},
          {"overlap", settings.overlap},
          {"cuts", absl::StrJoin(settings.cuts, ",")},
          {"batch", settings.batch},
          {"image", settings.image}};
}

// Leaves out variants that need more GPUs than there are, and says so.
absl::Status KeepPossibleVariants(const Machine& machine, Settings& settings) {
  const size_t here = machine.devices.size();
  if (here >= 2 || here >= static_cast<size_t>(settings.stages()))
    return absl::OkStatus();
  std::vector<std::string> possible, refused;
  for (const std::string& variant : settings.variants)
    (variant == "single" ? possible : refused).push_back(variant);
  settings.variants = possible;
  if (refused.empty()) return absl::OkStatus();
  const std::string why =
      absl::StrCat(absl::StrJoin(refused, " and "), " need 2 GPUs; from ",
                   machine.devices.front().ToString(), " on there is 1");
  if (possible.empty()) return absl::FailedPreconditionError(why);
  std::fprintf(stderr, "%s\n", why.c_str());
  return absl::OkStatus();
}

Measurements MeasureOnCpu(const Settings& settings, const Machine& machine) {
  const int threads = machine.threads_per_device;
  ASSIGN_OR_RETURN(const auto cluster, DeviceCluster::Make(settings.stages()));
  const auto make = [&](const Variant& variant) -> Result {
    if (!variant.pipelined())
      return LocalResNet::Make(settings, variant.cut, threads);
    return MakeRemoteResNet(cluster->trainer(), cluster->workers(), settings,
                            {.cuts = settings.cuts,
                             .split_size = variant.split_size,
                             .compute_threads = threads});
  };
  auto measurements =
      RunExperiment(settings, make, DetailsOf(settings, machine));
  const absl::Status shutdown = cluster->Shutdown();
  RETURN_IF_ERROR(measurements.status());
  RETURN_IF_ERROR(shutdown);
  return measurements;
}

Measurements MeasureOnGpus(const Settings& settings, const Machine& machine) {
  const auto make = [&](const Variant& variant) -> Result {
    return DeviceResNet::Make(settings, machine, variant);
  };
  return RunExperiment(settings, make, DetailsOf(settings, machine));
}

absl::Status TraceOverlap(const Settings& settings, const Machine& machine) {
  Settings pipelined = settings;
  pipelined.variants = {"pipelined"};
  const Variant variant = VariantsOf(pipelined).front();
  ASSIGN_OR_RETURN(const auto model,
                   DeviceResNet::Make(settings, machine, variant));
  ASSIGN_OR_RETURN(const TrainingBatch batch,
                   model->Place(SyntheticBatches(settings).front()));
  for (int i = 0; i < model->warm_up_steps(); ++i) {
    RETURN_IF_ERROR(model->TrainStep(batch).status());
  }
  ASSIGN_OR_RETURN(const std::string found,
                   model->TraceStep(batch, machine.overlap_trace));
  std::printf("%s\n", found.c_str());
  return absl::OkStatus();
}

std::string Title(const Settings& settings, const Machine& machine) {
  std::string title = absl::StrCat(
      "ResNet", settings.model.depth, ", batches of ", settings.batch,
      " images of ", settings.image, "x", settings.image, ", ");
  if (machine.is_cuda()) {
    absl::StrAppend(&title, machine.devices.size(), " of ", settings.stages(),
                    " GPUs, ", machine.dtype_name,
                    machine.graph ? ", recorded steps" : ", plain steps");
  } else {
    absl::StrAppend(&title, settings.stages(), " devices of ",
                    machine.threads_per_device, " threads");
  }
  return absl::StrCat(title, ", one process");
}

// Refuses what only a pipeline over workers does.
absl::Status CheckSettings(const Settings& settings) {
  const auto variant = [&settings](const char* name) {
    return absl::c_linear_search(settings.variants, name);
  };
  const std::pair<bool, const char*> refused[] = {
      {!settings.data.empty() || settings.saving.on(),
       "--data and --checkpoint_dir are for resnet50_pipeline: this program "
       "measures on synthetic images"},
      {settings.choose_stages, "--stages=auto is for resnet50_pipeline"},
      {variant("calls"), "--variants=calls is for resnet50_pipeline"},
      {variant("local"),
       "--variants=local is for resnet50_pipeline: all variants of this "
       "program "
       "have their stages in one process"},
      {settings.replicas > 1, "--replicas is for resnet50_pipeline"},
      {settings.recover, "--recover is for resnet50_pipeline"},
      {!settings.require_path.empty(),
       "--require_path is for resnet50_pipeline: this program has no links "
       "between processes"},
      {!settings.trace.empty(),
       "--trace is for resnet50_pipeline; --overlap_trace shows what GPUs of "
       "this process do"}};
  for (const auto& [is_set, why] : refused) {
    if (is_set) return absl::InvalidArgumentError(why);
  }
  return absl::OkStatus();
}

absl::Status Main() {
  ASSIGN_OR_RETURN(Settings settings, SettingsFromFlags());
  RETURN_IF_ERROR(CheckSettings(settings));
  ASSIGN_OR_RETURN(const Machine machine, MachineFromFlags(settings.stages()));
  if (settings.recompute && machine.is_cuda()) {
    return absl::InvalidArgumentError(
        "--recompute with --device=cuda is for resnet50_pipeline");
  }
  if (!settings.micro_batches.empty() && !machine.is_cuda())
    return absl::InvalidArgumentError("--micro_batches needs --device=cuda");
  RETURN_IF_ERROR(KeepPossibleVariants(machine, settings));
  ASSIGN_OR_RETURN(const std::vector<Measurement> measurements,
                   machine.is_cuda() ? MeasureOnGpus(settings, machine)
                                     : MeasureOnCpu(settings, machine));
  RETURN_IF_ERROR(Report(settings, Title(settings, machine), measurements));
  if (machine.overlap_trace.empty()) return absl::OkStatus();
  return TraceOverlap(settings, machine);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

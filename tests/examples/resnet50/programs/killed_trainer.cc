// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// killed_trainer FOLDER STEPS CUT...: trains a small ResNet in stages, a worker
// each, from the newest whole checkpoint of FOLDER on, and saves every step.
// Prints "STEP LOSS" after each, with the loss in hexadecimal, bit for bit.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/status.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/support/device_cluster.h"

namespace baton::examples {
namespace {

absl::Status Train(const std::string& folder, int64_t steps,
                   const std::vector<std::string>& cuts) {
  Settings settings;
  settings.model = {
      .depth = 18, .num_classes = 4, .width = 4, .cifar_stem = true};
  settings.cuts = cuts;
  settings.batch = 4;
  settings.image = 16;
  settings.batches = 5;
  settings.stepping.optimizer = {.lr = 0.01, .others = {{"momentum", 0.9}}};
  const std::vector<TrainingBatch> batches = SyntheticBatches(settings);
  ASSIGN_OR_RETURN(const auto cluster, DeviceCluster::Make(settings.stages()));
  ASSIGN_OR_RETURN(
      const auto model,
      MakeRemoteResNet(cluster->trainer(), cluster->workers(), settings,
                       {.cuts = cuts, .split_size = 2, .compute_threads = 1}));
  ASSIGN_OR_RETURN(const auto checkpoints,
                   model->MakeCheckpointer({.folder = folder, .keep = 2}));
  const auto resumed = checkpoints->Resume(IfBroken::kFail);
  if (!resumed.ok() && !absl::IsNotFound(resumed.status()))
    return resumed.status();
  for (int64_t step = resumed.ok() ? resumed->step : 0; step < steps;) {
    const size_t batch = static_cast<size_t>(step) % batches.size();
    ASSIGN_OR_RETURN(const double loss, model->TrainStep(batches[batch]));
    std::printf("%d %a\n", static_cast<int>(++step), loss);
    std::fflush(stdout);
    RETURN_IF_ERROR(checkpoints->Save(step));
  }
  return checkpoints->Wait();
}

}  // namespace
}  // namespace baton::examples

// Ends without a shutdown: what is on the disk is all that counts.
int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const absl::Status status = baton::examples::Train(
      argv[1], std::atoll(argv[2]), {argv + 3, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a ResNet50 as a pipeline over worker processes:
//   baton-run --workers=2 --cores_per_worker=1 -- resnet50_pipeline

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/settings.h"
#include "examples/resnet50/training.h"
#include "examples/support/planning.h"
#include "examples/support/report.h"
#include "examples/support/traced.h"
#include "examples/support/trainer.h"
#include "tools/command_line.h"

ABSL_FLAG(
    std::string, journal, "",
    "with --recover and --data, a folder of this training's own, where "
    "states that workers keep are noted on the disk: the program, started "
    "again with it while the workers are there, goes on from the last one "
    "(baton-run --trainer_restarts)");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "Trains a ResNet over the workers of a cluster: by default the experiment\n"
    "single / split / pipelined on synthetic images, with --data real ones;\n"
    "local, if asked for, has all stages in one worker.\n"
    "Start it by baton-run, or give --rendezvous and --world_size.\n"
    "Default: --optimizer=sgd --lr=0.001; with --data --lr=0.05\n"
    "--momentum=0.9 --weight_decay=0.0005 --lr_schedule=warm-cosine.";

absl::Status Run(rpc::Agent& agent, std::vector<std::string> workers,
                 Settings settings) {
  if (!settings.data.empty()) return TrainOnImages(agent, workers, settings);
  std::optional<dist::Plan> plan;
  const PlannedModel planned = PlannedResNet(agent, settings);
  if (StagesAreOpen(planned, workers, settings)) {
    ASSIGN_OR_RETURN(plan, ChooseStages(planned, SyntheticBatches(settings)[0],
                                        settings, workers));
  }
  ASSIGN_OR_RETURN(
      std::vector<Measurement> measurements,
      RunExperiment(settings,
                    [&](const Variant& variant)
                        -> absl::StatusOr<std::unique_ptr<Trainable>> {
                      const auto none = std::vector<std::string>();
                      ASSIGN_OR_RETURN(
                          std::unique_ptr<Trainable> model,
                          MakeRemoteResNet(
                              agent, workers, settings,
                              {.cuts = variant.cut ? settings.cuts : none,
                               .split_size = variant.split_size,
                               .micro_batches = variant.micro_batches,
                               .local = variant.local,
                               .calls = variant.calls}));
                      return WithTrace(std::move(model), agent, settings.trace);
                    }));
  const std::string compared = plan
                                   ? ComparePlan(*plan, settings.refined_by,
                                                 settings.batches, measurements)
                                   : std::string();
  RETURN_IF_ERROR(
      Report(settings,
             absl::StrCat("ResNet", settings.model.depth, ", batches of ",
                          settings.batch, " images of ", settings.image, "x",
                          settings.image, ", ", workers.size(), " workers"),
             measurements));
  std::printf("%s", compared.c_str());
  return absl::OkStatus();
}

absl::Status Main() {
  ASSIGN_OR_RETURN(Settings settings, SettingsFromFlags());
  settings.journal = absl::GetFlag(FLAGS_journal);
  if (!settings.journal.empty() &&
      (!settings.recover || settings.data.empty())) {
    return tools::WrongFlag("journal", "goes with --recover and --data");
  }
  if (settings.micro_batches.size() > 1 && !settings.data.empty())
    return tools::WrongFlag("micro_batches", "takes one list with --data");
  if (!settings.trace.empty() && !settings.data.empty()) {
    return absl::InvalidArgumentError(
        "--trace is for synthetic images; use batonctl trace with --data");
  }
  if (!settings.require_path.empty() && !settings.data.empty()) {
    return absl::InvalidArgumentError(
        "--require_path is for synthetic images; measure them on the same "
        "workers first");
  }
  if (settings.replicas > 1 && !settings.data.empty() &&
      (settings.saving.on() || !settings.saving.weights.empty())) {
    return absl::InvalidArgumentError(
        "--checkpoint_dir and --weights are for one pipeline, without "
        "--replicas");
  }
  return RunTrainer([&](rpc::Agent& agent, std::vector<std::string> workers) {
    return Run(agent, std::move(workers), settings);
  });
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// ResNet50 trained as a pipeline over worker processes:
//   baton-run --workers=2 --cores_per_worker=1 -- resnet50_pipeline

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "core/status.h"
#include "examples/resnet50/experiment.h"
#include "examples/resnet50/planning.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/settings.h"
#include "examples/resnet50/traced.h"
#include "examples/resnet50/training.h"
#include "rpc/cluster.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, trace, "",
          "write a trace of one step at all workers, for ui.perfetto.dev; of "
          "several variants the last one stays");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "Trains a ResNet over the workers of a cluster: by default the experiment\n"
    "single / split / pipelined on synthetic images, with --data real ones.\n"
    "Start it by baton-run, or give --rendezvous and --world_size.";

std::vector<std::string> Workers(const rpc::Agent& agent) {
  std::vector<std::string> names;
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (worker.name != agent.self().name) names.push_back(worker.name);
  }
  return names;
}

absl::Status Run(rpc::Agent& agent, Settings settings) {
  std::vector<std::string> workers = Workers(agent);
  const std::string trace = absl::GetFlag(FLAGS_trace);
  if (!settings.data.empty()) {
    if (trace.empty()) return TrainOnImages(agent, workers, settings);
    return absl::InvalidArgumentError(
        "--trace is for synthetic images; use batonctl trace with --data");
  }
  std::optional<dist::Plan> plan;
  if (settings.choose_stages) {
    ASSIGN_OR_RETURN(plan, ChooseStages(agent, SyntheticBatches(settings)[0],
                                        settings, workers));
  }
  ASSIGN_OR_RETURN(
      std::vector<Measurement> measurements,
      RunExperiment(
          settings,
          [&](const Variant& variant)
              -> absl::StatusOr<std::unique_ptr<Trainable>> {
            const auto none = std::vector<std::string>();
            ASSIGN_OR_RETURN(
                std::unique_ptr<Trainable> model,
                RemoteResNet::Make(agent, workers, settings,
                                   {.cuts = variant.cut ? settings.cuts : none,
                                    .split_size = variant.split_size,
                                    .micro_batches = variant.micro_batches}));
            if (trace.empty()) return model;
            return std::make_unique<Traced>(std::move(model), agent, trace);
          }));
  const std::string compared =
      plan ? ComparePlan(*plan, settings, measurements) : std::string();
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
  if (!settings.micro_batches.empty() && !settings.data.empty()) {
    return absl::InvalidArgumentError(
        "--micro_batches is for synthetic images");
  }
  ASSIGN_OR_RETURN(rpc::ClusterOptions cluster,
                   tools::ClusterOptionsFromFlags("trainer"));
  cluster.agent.on_start = dist::Attach;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(cluster), MakeRegistry()));
  const absl::Status result = Run(*agent, std::move(settings));
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

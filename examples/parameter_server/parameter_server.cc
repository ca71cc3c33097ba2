// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a LeNet whose parameters are at servers, with any number of trainers:
//   baton-run --workers=3 --worker_program=parameter_server
//       -- parameter_server --data=train-images-idx3-ubyte.gz
// The first --servers workers serve, the others train. The process that
// baton-run calls the trainer only starts them and reports.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "examples/parameter_server/experiment.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/saving_flags.h"
#include "examples/support/training_log.h"
#include "examples/support/unused_flags.h"
#include "models/distributed/server/compression.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, data, "",
          "images of 28x28 to train on: an IDX file with its labels beside it");
ABSL_FLAG(int, servers, 1, "workers that keep the parameters");
ABSL_FLAG(std::vector<std::string>, mode, {"bsp"},
          "bsp, ssp and async, one after the other: whether trainers wait for "
          "each other at every push, at some, or never");
ABSL_FLAG(int, staleness, 2,
          "of ssp: pushes that a trainer may be ahead of the slowest");
ABSL_FLAG(bool, backups, false, "every shard has a second server");
ABSL_FLAG(std::string, compression, "none",
          "of the gradients that a LeNet's trainers push: none, bf16 or topk, "
          "the largest elements alone");
ABSL_FLAG(double, top_share, 0.01, "of topk: the share of the elements");
ABSL_FLAG(int, pushes, 300, "of each trainer");
ABSL_FLAG(int, batch, 32, "images of each push");
ABSL_FLAG(uint64_t, seed, 1, "of the weights and of the order of images");
ABSL_FLAG(absl::Duration, report_every, absl::Milliseconds(500),
          "how often the accuracy on the images held out is looked at");
ABSL_FLAG(std::string, gradients, "",
          "lenet or resnet50: do not train, but measure how often a second "
          "such gradients are pushed and values pulled");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a LeNet by trainers that push gradients to parameter servers.\n"
    "Default: --optimizer=sgd --lr=0.1.";

absl::StatusOr<optim::AnyOptions> OptimizerOfServers() {
  return OptimizerFromFlags({.lr = 0.1});
}

absl::StatusOr<dist::Compression> CompressionFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_compression);
  RETURN_IF_ERROR(
      tools::CheckWord("--compression", name, {"none", "bf16", "topk"}));
  const dist::Compression compression{.kind = *dist::CompressionFromName(name),
                                      .keep = absl::GetFlag(FLAGS_top_share)};
  if (!dist::Check(compression).ok())
    return tools::WrongFlag("top_share", "must be more than 0, and 1 at most");
  return compression;
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_servers, FLAGS_pushes, FLAGS_batch));
  const std::string gradients = absl::GetFlag(FLAGS_gradients);
  if (!gradients.empty()) {
    RETURN_IF_ERROR(
        tools::CheckWord("--gradients", gradients, {"lenet", "resnet50"}));
    RETURN_IF_ERROR(CheckUnused({"data", "batch", "seed", "report_every",
                                 "compression", "checkpoint_dir"},
                                "gradients"));
  } else if (absl::GetFlag(FLAGS_data).empty()) {
    return tools::WrongFlag("data", "is missing: give the images to train on");
  }
  for (const std::string& mode : absl::GetFlag(FLAGS_mode)) {
    RETURN_IF_ERROR(tools::CheckWord("--mode", mode, {"bsp", "ssp", "async"}));
  }
  ASSIGN_OR_RETURN(const Saving saving, SavingFromFlags());
  if (!saving.weights.empty())
    return tools::WrongFlag("weights", "is of no use here");
  if (saving.on() && absl::GetFlag(FLAGS_mode).size() > 1)
    return tools::WrongFlag("mode", "must be one with --checkpoint_dir");
  RETURN_IF_ERROR(OptimizerOfServers().status());
  ASSIGN_OR_RETURN(const dist::Compression compression, CompressionFromFlags());
  if (compression.kind != dist::Compression::Kind::kTopK)
    RETURN_IF_ERROR(CheckUnused(
        {"top_share"}, "compression=" + absl::GetFlag(FLAGS_compression)));
  return tools::TimeOf(FLAGS_report_every).status();
}

dist::ServerOptions OptionsFor(const std::string& mode, const Crew& crew) {
  dist::ServerOptions options;
  options.rule = *OptimizerOfServers();
  options.mode = *dist::ConsistencyFromName(mode);
  options.staleness = absl::GetFlag(FLAGS_staleness);
  options.trainers = static_cast<int32_t>(crew.trainers.size());
  options.backups = absl::GetFlag(FLAGS_backups);
  return options;
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent, const Crew& crew,
                                  const std::string& mode,
                                  std::vector<Curve>& curves) {
  AccuracyRun run{.options = OptionsFor(mode, crew), .task = {}};
  run.task = {.data = absl::GetFlag(FLAGS_data),
              .batch = absl::GetFlag(FLAGS_batch),
              .seed = absl::GetFlag(FLAGS_seed),
              .trainers = run.options.trainers,
              .compression = {}};
  ASSIGN_OR_RETURN(run.task.compression, CompressionFromFlags());
  run.pushes = absl::GetFlag(FLAGS_pushes);
  ASSIGN_OR_RETURN(run.report_every, tools::TimeOf(FLAGS_report_every));
  ASSIGN_OR_RETURN(run.saving, SavingFromFlags());
  RETURN_IF_ERROR(PrepareToSave(run.saving));
  Curve shown{.name = mode};
  TrainingLog log(mode, "updates", OptimizerOfServers()->lr);
  int64_t told = 0;  // the last version that was printed
  ASSIGN_OR_RETURN(
      const AccuracyCurve curve,
      TrainLeNet(agent, crew, run, [&](const AccuracyPoint& point) {
        std::fprintf(
            stderr, "%s  %6.1f s  update %6lld  accuracy %.3f  %d trainers\n",
            mode.c_str(), point.seconds, static_cast<long long>(point.version),
            point.accuracy, static_cast<int>(point.trainers));
        shown.x.push_back(point.seconds);
        shown.y.push_back(point.accuracy);
        log.Add(point.version,
                point.version - std::exchange(told, point.version),
                {{"accuracy", point.accuracy}});
      }));
  curves.push_back(shown);
  const AccuracyPoint& last = curve.points.back();
  log.Add(last.version, last.version - told, {{"loss", curve.loss}});
  return Measurement{
      .variant = mode,
      .items = curve.pushes * run.task.batch,
      .seconds = {last.seconds},
      .loss = curve.loss,
      .details = {
          {"accuracy", last.accuracy},
          {"pushes_per_s", static_cast<double>(curve.pushes) / last.seconds},
          {"servers", static_cast<int64_t>(crew.servers.size())},
          {"trainers", static_cast<int64_t>(crew.trainers.size())},
          {"lost_trainers", curve.lost},
          {"resumed_from", curve.resumed_from},
          {"times_s", shown.x},
          {"accuracies", shown.y}}};
}

absl::StatusOr<Measurement> Push(rpc::Agent& agent, const Crew& crew,
                                 const std::string& mode) {
  const std::string gradients = absl::GetFlag(FLAGS_gradients);
  const int64_t pushes = absl::GetFlag(FLAGS_pushes);
  ASSIGN_OR_RETURN(
      const PushFigures figures,
      MeasurePushes(agent, crew, OptionsFor(mode, crew), gradients, pushes));
  Measurement measured = PushMeasurement(
      absl::StrCat(mode, " ", gradients),
      static_cast<int64_t>(crew.servers.size()),
      static_cast<int64_t>(crew.trainers.size()), pushes, figures);
  RETURN_IF_ERROR(tools::Print(FormatPushing(measured)));
  return measured;
}

absl::Status Run(rpc::Agent& agent) {
  Findings findings;
  std::vector<Curve> curves;
  for (const std::string& mode : absl::GetFlag(FLAGS_mode)) {
    ASSIGN_OR_RETURN(
        const Crew crew,
        CrewOf(agent, absl::GetFlag(FLAGS_servers)));  // of those there now
    RETURN_IF_ERROR(tools::Print(
        absl::StrCat(absl::StrJoin(crew.servers, ", "), " serves\n")));
    ASSIGN_OR_RETURN(Measurement measured,
                     absl::GetFlag(FLAGS_gradients).empty()
                         ? Train(agent, crew, mode, curves)
                         : Push(agent, crew, mode));
    findings.measurements.push_back(std::move(measured));
  }
  if (!curves.empty()) {
    findings.charts = {
        {"accuracy", CurvesChart("accuracy", "LeNet by parameter servers",
                                 "seconds", "accuracy", curves)}};
  }
  return Tell(findings);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(
      argc, argv,
      {.workers = 3,
       .arguments = "--data=IMAGES --mode=bsp,ssp,async",
       .about = baton::examples::kAbout,
       .train = baton::examples::Run,
       .check = baton::examples::CheckFlags,
       .add = baton::examples::RegisterTrainers});
}

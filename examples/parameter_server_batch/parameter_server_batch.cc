// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a ResNet that one server steps by the gradients of several trainers
// together:
//   baton-run --workers=4 --worker_program=parameter_server_batch
//       -- parameter_server_batch --data=cifar-10-binary.tar.gz
// The first worker serves; the others, and workers that join later, train. The
// process that baton-run calls the trainer only starts them and reports.

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "examples/parameter_server_batch/batch_trainer.h"
#include "examples/parameter_server_batch/batch_training.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/training_log.h"
#include "examples/support/unused_flags.h"
#include "models/data/open.h"
#include "rpc/spares.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, data, "",
          "images of 3x32x32 to train on: CIFAR-10's binary form, or a folder "
          "or archive of class folders of JPEGs");
ABSL_FLAG(std::string, test_data, "",
          "images to look at the accuracy on; usual: the test split of --data, "
          "where that is CIFAR-10's binary form, else the same images");
ABSL_FLAG(int, test_images, 1000, "how many of them are used; 0: all");
ABSL_FLAG(int, depth, 18, "of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int, width, 16,
          "channels behind the stem; 64 is the model as published");
ABSL_FLAG(int, reports, 0,
          "trainers whose reports make a step; 0: all that are there");
ABSL_FLAG(absl::Duration, wait, absl::Seconds(1),
          "how long the server waits after the first report of a step before "
          "it steps by those that have come");
ABSL_FLAG(int, steps, 300, "of the server");
ABSL_FLAG(double, target_accuracy, 0,
          "end the training before the last step once this is reached; 0: do "
          "not");
ABSL_FLAG(int, batch, 32, "images of each report");
ABSL_FLAG(int, pushes, 0,
          "do not train, but measure how often a second each trainer's "
          "gradients of the model, of images of 1000 classes, are reported and "
          "answered, so often; 0: train");
ABSL_FLAG(uint64_t, seed, 1, "of the weights and of the order of images");
ABSL_FLAG(absl::Duration, report_every, absl::Seconds(2),
          "how often the accuracy is looked at");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a ResNet by a server that steps once for the gradients of several\n"
    "trainers; one that is lost or late holds up nobody for long.\n"
    "Default: --optimizer=sgd --lr=0.1 --momentum=0.9.";

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(
      tools::AtLeast(1, FLAGS_steps, FLAGS_batch, FLAGS_width, FLAGS_depth));
  RETURN_IF_ERROR(
      tools::AtLeast(0, FLAGS_reports, FLAGS_test_images, FLAGS_pushes));
  if (absl::GetFlag(FLAGS_pushes) > 0) {
    RETURN_IF_ERROR(
        CheckUnused({"data", "test_data", "test_images", "steps",
                     "target_accuracy", "batch", "seed", "report_every"},
                    "pushes"));
  } else if (absl::GetFlag(FLAGS_data).empty()) {
    return tools::WrongFlag("data", "is missing: give the images to train on");
  }
  RETURN_IF_ERROR(tools::TimeOf(FLAGS_wait).status());
  return tools::TimeOf(FLAGS_report_every).status();
}

// Returns the model for the images at `path`. With --pushes, where nothing is
// trained, `path` is not read.
absl::StatusOr<models::ResNetOptions> ModelFor(const std::string& path) {
  models::ResNetOptions model;
  model.depth = absl::GetFlag(FLAGS_depth);
  model.width = absl::GetFlag(FLAGS_width);
  model.seed = absl::GetFlag(FLAGS_seed);
  if (absl::GetFlag(FLAGS_pushes) > 0) return model;
  ASSIGN_OR_RETURN(const auto images, data::OpenDataset(path));
  ASSIGN_OR_RETURN(const data::Sample first, images->Get(0));
  if (first.image.shape() != Shape({3, 32, 32})) {
    return absl::InvalidArgumentError(absl::StrCat(
        images->Describe(0), " is ", first.image.shape().ToString(),
        ", not [3, 32, 32]: --data names images like CIFAR-10's"));
  }
  model.num_classes = static_cast<int64_t>(images->classes().size());
  model.cifar_stem = true;
  return model;
}

absl::StatusOr<BatchRun> RunFor(const rpc::Agent& agent) {
  BatchRun run;
  for (const rpc::WorkerInfo& worker : rpc::OthersButSpares(agent)) {
    if (run.server.empty()) {
      run.server = worker.name;
    } else {
      run.trainers.push_back(worker.name);
    }
  }
  if (run.trainers.empty()) {
    return absl::InvalidArgumentError(
        "one worker serves and none is left to train: give baton-run two "
        "--workers or more");
  }
  const std::string data = absl::GetFlag(FLAGS_data);
  ASSIGN_OR_RETURN(
      const Stepping stepping,
      SteppingFromFlags(
          {.optimizer = {.lr = 0.1, .others = {{"momentum", 0.9}}}}));
  run.task.optimizer = stepping.optimizer;
  run.task.schedule = stepping.schedule;
  ASSIGN_OR_RETURN(run.task.model, ModelFor(data));
  run.task.steps = absl::GetFlag(FLAGS_steps);
  run.task.reports = absl::GetFlag(FLAGS_reports);
  ASSIGN_OR_RETURN(run.task.wait, tools::TimeOf(FLAGS_wait));
  run.task.data = data;
  run.task.batch = absl::GetFlag(FLAGS_batch);
  run.task.seed = absl::GetFlag(FLAGS_seed);
  run.test_data = absl::GetFlag(FLAGS_test_data);
  if (run.test_data.empty()) run.test_data = data;
  run.test_images = absl::GetFlag(FLAGS_test_images);
  ASSIGN_OR_RETURN(run.report_every, tools::TimeOf(FLAGS_report_every));
  return run;
}

// Prints the point; returns whether to go on.
bool Show(const BatchPoint& point) {
  std::fprintf(stderr,
               "%6.1f s  step %6lld  loss %.3f  accuracy %.3f  %lld trainers\n",
               point.seconds, static_cast<long long>(point.status.steps),
               point.status.loss, point.accuracy,
               static_cast<long long>(point.status.trainers));
  const double target = absl::GetFlag(FLAGS_target_accuracy);
  return target == 0 || point.accuracy < target;
}

Measurement Measured(const BatchRun& run, const BatchOutcome& outcome) {
  const BatchPoint& last = outcome.points.back();
  std::vector<double> times, accuracies;
  for (const BatchPoint& point : outcome.points) {
    times.push_back(point.seconds);
    accuracies.push_back(point.accuracy);
  }
  return {.variant = absl::StrCat("resnet", run.task.model.depth),
          .items = last.status.reports * run.task.batch,
          .seconds = {last.seconds},
          .loss = last.status.loss,
          .details = {{"accuracy", last.accuracy},
                      {"steps", last.status.steps},
                      {"reports", last.status.reports},
                      {"cut_short", last.status.cut_short},
                      {"reports_per_s",
                       static_cast<double>(last.status.reports) / last.seconds},
                      {"trainers_begun", outcome.begun},
                      {"trainers_lost", outcome.lost},
                      {"times_s", times},
                      {"accuracies", accuracies}}};
}

std::string AccuracyChart(const BatchOutcome& outcome) {
  Curve curve{.name = "test images"};
  for (const BatchPoint& point : outcome.points) {
    curve.x.push_back(point.seconds);
    curve.y.push_back(point.accuracy);
  }
  return CurvesChart("accuracy", "ResNet by a batch-update server", "seconds",
                     "accuracy", {curve});
}

absl::Status Push(rpc::Agent& agent, const BatchRun& run) {
  const int64_t pushes = absl::GetFlag(FLAGS_pushes);
  ASSIGN_OR_RETURN(const PushFigures figures,
                   MeasureReports(agent, run, pushes));
  const Measurement measured = PushMeasurement(
      absl::StrCat("batch resnet", run.task.model.depth), 1,
      static_cast<int64_t>(run.trainers.size()), pushes, figures);
  RETURN_IF_ERROR(tools::Print(FormatPushing(measured)));
  return Tell({.measurements = {measured}});
}

absl::Status Run(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(const BatchRun run, RunFor(agent));
  RETURN_IF_ERROR(tools::Print(absl::StrCat(
      run.server, " serves, ", absl::StrJoin(run.trainers, ", "), " train\n")));
  if (absl::GetFlag(FLAGS_pushes) > 0) return Push(agent, run);
  TrainingLog log(
      "batches", "images",
      Stepping{.optimizer = run.task.optimizer, .schedule = run.task.schedule}
          .RateOver(run.task.steps));
  int64_t told = 0;  // number of reports printed
  ASSIGN_OR_RETURN(const BatchOutcome outcome,
                   TrainByBatches(agent, run, [&](const BatchPoint& point) {
                     const BatchStatus& status = point.status;
                     const int64_t reports =
                         status.reports - std::exchange(told, status.reports);
                     log.Add(
                         status.steps, reports * run.task.batch,
                         {{"loss", status.loss}, {"accuracy", point.accuracy}});
                     return Show(point);
                   }));
  return Tell({.measurements = {Measured(run, outcome)},
               .charts = {{"accuracy", AccuracyChart(outcome)}}});
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(
      argc, argv,
      {.workers = 4,
       .arguments = "--data=IMAGES",
       .about = baton::examples::kAbout,
       .train = baton::examples::Run,
       .check = baton::examples::CheckFlags,
       .add = baton::examples::RegisterBatchTraining});
}

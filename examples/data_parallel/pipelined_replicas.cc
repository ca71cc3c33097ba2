// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/pipelined_replicas.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/support/progress.h"
#include "examples/support/traced.h"
#include "examples/support/train_steps.h"
#include "examples/support/training_log.h"

namespace baton::examples {
namespace {

absl::StatusOr<Settings> SettingsOf(const ReplicaTask& task,
                                    const PipelinedReplicas& options) {
  Settings settings;
  settings.model = task.model;
  settings.stepping.optimizer = task.optimizer;
  settings.loss = dist::Loss::kCrossEntropy;
  settings.schedule.name = "1f1b";
  settings.graph = task.graph;
  const auto cuts = EvenCuts(options.stages);
  if (!cuts) return absl::InvalidArgumentError("no cuts for so many stages");
  settings.cuts = *cuts;
  settings.replicas = static_cast<int>(task.members.size()) / options.stages;
  if (settings.replicas < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pipeline of ", options.stages, " workers, but only ",
                     task.members.size(), " are there"));
  }
  return settings;
}

TrainingBatch RandomBatch(const ReplicaTask& task, int64_t images) {
  Generator generator(task.seed);
  TrainingBatch batch;
  batch.inputs =
      RandNormal({images, task.model.in_channels, task.image, task.image},
                 generator)
          .Contiguous(task.model.format);
  batch.targets = RandInt(0, task.model.num_classes, {images}, generator);
  return batch;
}

// Measures all steps except those that warm up.
absl::StatusOr<Measurement> Measure(const std::string& variant,
                                    Trainable& model,
                                    const TrainingBatch& batch, double rate,
                                    const PipelinedReplicas& options) {
  const int64_t warm_up = options.warm_up + model.warm_up_steps();
  const int64_t steps = warm_up + options.steps;
  Measurement measurement;
  measurement.variant = variant;
  measurement.items = batch.inputs.dim(0);
  std::vector<double> losses;
  Progress progress(variant, measurement.item, steps);
  TrainingLog log(variant, measurement.item, rate);
  TrainSteps training(model, [&](const TrainSteps::Done& step) {
    losses.push_back(step.loss);
    if (static_cast<int64_t>(losses.size()) > warm_up)
      measurement.seconds.push_back(step.seconds);
    progress.Step(step.loss, step.rows);
    log.Step(step.loss, step.rows);
    return absl::OkStatus();
  });
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(training.Begin(batch));
  RETURN_IF_ERROR(training.Finish());
  measurement.loss = losses.back();
  measurement.details = model.Details();
  measurement.details.push_back({"losses", std::move(losses)});
  return measurement;
}

}  // namespace

absl::StatusOr<Measurement> TrainPipelines(rpc::Agent& agent,
                                           const std::string& variant,
                                           const ReplicaTask& task,
                                           const PipelinedReplicas& options) {
  ASSIGN_OR_RETURN(const Settings settings, SettingsOf(task, options));
  const int64_t split = options.split_size > 0
                            ? options.split_size
                            : std::max<int64_t>(1, task.batch / 4);
  ASSIGN_OR_RETURN(
      std::unique_ptr<Trainable> model,
      MakeRemoteResNet(agent, task.members, settings,
                       {.cuts = settings.cuts, .split_size = split}));
  model = WithTrace(std::move(model), agent, options.trace);
  ASSIGN_OR_RETURN(
      const TrainingBatch batch,
      model->Place(RandomBatch(task, task.batch * settings.replicas)));
  ASSIGN_OR_RETURN(Measurement measured,
                   Measure(variant, *model, batch, task.optimizer.lr, options));
  measured.split_size = split;
  return measured;
}

}  // namespace baton::examples

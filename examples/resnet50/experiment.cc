// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/experiment.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "core/ops/indexing.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/link_paths.h"
#include "examples/support/progress.h"
#include "examples/support/report.h"
#include "examples/support/train_steps.h"
#include "examples/support/training_log.h"

namespace baton::examples {
namespace {

Measurement Begin(const Settings& settings, const Variant& variant) {
  Measurement measurement;
  measurement.variant = variant.name;
  measurement.split_size = variant.split_size;
  measurement.items = settings.batch * settings.batches;
  return measurement;
}

// Measures this process's CPU time since construction, as a share of one core.
class CpuShare {
 public:
  double sofar() const {
    const std::chrono::duration<double> wall = Clock::now() - begin_;
    return static_cast<double>(std::clock() - used_) / CLOCKS_PER_SEC /
           wall.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::clock_t used_ = std::clock();
};

absl::StatusOr<Measurement> Measure(const Settings& settings,
                                    const Variant& variant,
                                    const std::vector<TrainingBatch>& batches,
                                    Trainable& model) {
  Measurement measurement = Begin(settings, variant);
  std::vector<TrainingBatch> placed;
  for (const TrainingBatch& batch : batches) {
    ASSIGN_OR_RETURN(TrainingBatch there, model.Place(batch));
    placed.push_back(std::move(there));
  }
  for (int i = 0; i < model.warm_up_steps(); ++i) {
    RETURN_IF_ERROR(model.TrainStep(placed.front()).status());
  }
  Progress progress(variant.name, measurement.item,
                    settings.repeat * settings.batches);
  TrainingLog log(
      variant.name, measurement.item,
      [rate = settings.stepping.optimizer.lr](int64_t) { return rate; });
  int64_t done = 0;
  TrainSteps steps(model, [&](const TrainSteps::Done& step) {
    if (done++ % settings.batches == 0) measurement.seconds.push_back(0);
    measurement.seconds.back() += step.seconds;
    measurement.loss = step.loss;
    progress.Step(step.loss, step.rows);
    log.Step(step.loss, step.rows);
    return absl::OkStatus();
  });
  CpuShare share;
  for (int64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    // In the first repeat, workers open the shared memory of each batch.
    if (repeat == 1) share = CpuShare();
    for (const TrainingBatch& batch : placed)
      RETURN_IF_ERROR(steps.Begin(batch));
  }
  RETURN_IF_ERROR(steps.Finish());
  measurement.details.push_back({"trainer_cpu", share.sofar()});
  for (Detail& detail : model.Details())
    measurement.details.push_back(std::move(detail));
  RETURN_IF_ERROR(AddPaths(settings, model, measurement));
  RETURN_IF_ERROR(SaveSchedule(settings, model));
  return measurement;
}

}  // namespace

std::vector<TrainingBatch> SyntheticBatches(const Settings& settings) {
  Generator generator(settings.model.seed + 1);
  std::vector<TrainingBatch> batches;
  for (int64_t i = 0; i < settings.batches; ++i) {
    TrainingBatch batch;
    const Tensor images =
        RandNormal({settings.batch, settings.model.in_channels, settings.image,
                    settings.image},
                   generator);
    batch.inputs = images.Contiguous(MemoryFormat::kChannelsLast);
    batch.targets =
        RandInt(0, settings.model.num_classes, {settings.batch}, generator);
    if (settings.loss == dist::Loss::kMse) {
      batch.targets = ops::OneHot(batch.targets, settings.model.num_classes);
    }
    batches.push_back(batch);
  }
  return batches;
}

absl::StatusOr<std::vector<Measurement>> RunExperiment(
    const Settings& settings, const MakeTrainable& make,
    const std::vector<Detail>& details) {
  const std::vector<TrainingBatch> batches = SyntheticBatches(settings);
  std::vector<Measurement> measurements;
  for (const Variant& variant : VariantsOf(settings)) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Trainable> model, make(variant));
    ASSIGN_OR_RETURN(Measurement measurement,
                     Measure(settings, variant, batches, *model));
    measurement.details.insert(measurement.details.begin(), details.begin(),
                               details.end());
    measurements.push_back(std::move(measurement));
  }
  return measurements;
}

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/transformer/text_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/link_paths.h"
#include "examples/support/planning.h"
#include "examples/support/progress.h"
#include "examples/support/report.h"
#include "examples/support/traced.h"
#include "examples/support/train_steps.h"
#include "examples/support/training_log.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

absl::Status CheckDtypes(const rpc::Agent& agent,
                         const std::vector<std::string>& workers) {
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (worker.compute.dtype != DType::kF16 ||
        std::find(workers.begin(), workers.end(), worker.name) == workers.end())
      continue;
    return absl::FailedPreconditionError(
        absl::StrCat(worker.name,
                     " computes in fp16, in which a language model's gradients "
                     "vanish: start it with --dtype=bf16"));
  }
  return absl::OkStatus();
}

std::vector<Detail> DetailsOf(const rpc::Agent& agent,
                              const std::vector<std::string>& workers,
                              const TextSettings& settings,
                              const Variant& variant) {
  std::vector<std::string> computes;
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (std::find(workers.begin(), workers.end(), worker.name) != workers.end())
      computes.push_back(worker.compute.ToString());
  }
  return {{"workers", absl::StrJoin(computes, ", ")},
          {"cuts", variant.cut ? absl::StrJoin(settings.cuts, ",") : ""},
          {"batch", settings.batch},
          {"context", settings.task.model.context},
          {"tied", settings.task.model.tied}};
}

// Returns the losses of all steps; adds their times to the measurement.
absl::StatusOr<std::vector<double>> Train(const TextTask& task,
                                          const data::ByteText& text,
                                          Trainable& model,
                                          Measurement& measurement) {
  const auto warm_up = static_cast<size_t>(model.warm_up_steps());
  if (task.steps <= model.warm_up_steps()) {
    return tools::WrongFlag(
        "steps", absl::StrCat("must be more than ", warm_up,
                              ", the steps whose time does not count"));
  }
  Generator generator(task.model.seed);
  Progress progress(measurement.variant, measurement.item, task.steps);
  TrainingLog log(measurement.variant, measurement.item,
                  task.stepping.RateOver(task.steps));
  std::vector<double> losses;
  TrainSteps steps(model, [&](const TrainSteps::Done& step) {
    losses.push_back(step.loss);
    if (losses.size() > warm_up) measurement.seconds.push_back(step.seconds);
    progress.Step(step.loss, task.tokens());
    log.Step(step.loss, task.tokens());
    return absl::OkStatus();
  });
  for (int64_t step = 0; step < task.steps; ++step) {
    if (step == model.warm_up_steps()) RETURN_IF_ERROR(steps.Finish());
    const data::TokenBatch drawn =
        text.Draw(task.batch, task.model.context, generator);
    RETURN_IF_ERROR(steps.Begin({drawn.ids, drawn.targets}));
  }
  RETURN_IF_ERROR(steps.Finish());
  return losses;
}

absl::StatusOr<Measurement> Measure(rpc::Agent& agent,
                                    const std::vector<std::string>& workers,
                                    const TextSettings& settings,
                                    const Variant& variant,
                                    const Texts& texts) {
  const TextTask& task = settings.task;
  ASSIGN_OR_RETURN(
      auto remote,
      RemoteTransformer::Make(
          agent, workers, SpecOf(task), settings,
          {.cuts = variant.cut ? settings.cuts : std::vector<std::string>(),
           .split_size = variant.split_size,
           .micro_batches = variant.micro_batches,
           .compute_threads = settings.compute_threads,
           .local = variant.local}));
  RemoteTransformer& evaluated = *remote;
  const std::unique_ptr<Trainable> model =
      WithTrace(std::move(remote), agent, settings.trace);
  Measurement measurement = {
      .variant = variant.name,
      .split_size = variant.split_size,
      .items = task.tokens(),
      .seconds = {},
      .details = DetailsOf(agent, workers, settings, variant),
      .item = "tokens"};
  ASSIGN_OR_RETURN(std::vector<double> losses,
                   Train(task, texts.training, *model, measurement));
  measurement.loss = losses.back();
  for (Detail& detail : model->Details())
    measurement.details.push_back(std::move(detail));
  RETURN_IF_ERROR(AddPaths(settings, *model, measurement));
  ASSIGN_OR_RETURN(
      const double validation,
      ValidationLoss(
          texts.validation, task,
          [&](const data::TokenBatch& part) -> absl::StatusOr<double> {
            ASSIGN_OR_RETURN(const dist::Pipeline::EvalResult result,
                             evaluated.Evaluate({part.ids, part.targets}));
            return result.loss;
          }));
  measurement.details.push_back({"validation_loss", validation});
  measurement.details.push_back({"losses", std::move(losses)});
  RETURN_IF_ERROR(SaveSchedule(settings, *model));
  return measurement;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EvenCuts(
    const models::TransformerOptions& model, int stages) {
  const int64_t layers = model.layers;
  if (stages > layers + 1) {
    return tools::WrongFlag(
        "stages",
        absl::StrCat("is ", stages, ", but the model's ", layers,
                     " blocks and its head make at most ", layers + 1,
                     " stages: give fewer --stages or more --layers"));
  }
  // The multiplications for a token in the head, relative to those in a block.
  const double head = static_cast<double>(model.vocabulary) /
                      static_cast<double>(12 * model.width + 2 * model.context);
  const double all = static_cast<double>(layers) + head;
  std::vector<std::string> cuts;
  int64_t least = 0;  // the first block to cut after
  for (int64_t stage = 1; stage < stages; ++stage) {
    const int64_t even = std::llround(all * static_cast<double>(stage) /
                                      static_cast<double>(stages)) -
                         1;
    const int64_t block = std::clamp(even, least, layers - (stages - stage));
    cuts.push_back(absl::StrCat("blocks.", block));
    least = block + 1;
  }
  return cuts;
}

absl::StatusOr<TextSettings> TextSettingsFromFlags() {
  TextSettings settings;
  ASSIGN_OR_RETURN(settings.task, TextTaskFromFlags());
  const models::TransformerOptions& model = settings.task.model;
  ASSIGN_OR_RETURN(
      static_cast<PipelineSettings&>(settings),
      PipelineSettingsFromFlags(
          {.batch = settings.task.batch,
           .split_size = std::max<int64_t>(settings.task.batch / 4, 1),
           .variants = {"single", "split", "pipelined", "local"},
           .cuts = [&](int stages) { return EvenCuts(model, stages); }}));
  settings.loss = dist::Loss::kCrossEntropy;
  // Reports a wrong cut before any work.
  RETURN_IF_ERROR(
      models::Transformer::StageUnits(model, settings.cuts, 0).status());
  return settings;
}

RemoteTransformer::Spec SpecOf(const TextTask& task) {
  return {.model = task.model,
          .optimizer = task.stepping.optimizer,
          .rates = task.stepping.RatesOver(task.steps),
          .routes = [model = task.model](int stages) {
            return dist::TransformerStage::RoutesOf(model, stages);
          }};
}

absl::StatusOr<std::vector<Measurement>> TrainOnText(
    rpc::Agent& agent, std::vector<std::string> workers,
    TextSettings settings) {
  RETURN_IF_ERROR(CheckDtypes(agent, workers));
  ASSIGN_OR_RETURN(const Texts texts, ReadTexts(settings.task));
  std::optional<dist::Plan> plan;
  const auto planned =
      PlannedRemoteModel<dist::TransformerStage>(agent, SpecOf(settings.task));
  if (StagesAreOpen(planned, workers, settings)) {
    Generator generator(settings.task.model.seed);
    const data::TokenBatch sample = texts.training.Draw(
        settings.task.batch, settings.task.model.context, generator);
    ASSIGN_OR_RETURN(plan, ChooseStages(planned, {sample.ids, sample.targets},
                                        settings, workers));
  }
  std::vector<Measurement> measurements;
  for (const Variant& variant : VariantsOf(settings)) {
    ASSIGN_OR_RETURN(Measurement measurement,
                     Measure(agent, workers, settings, variant, texts));
    measurements.push_back(std::move(measurement));
  }
  if (plan)
    std::printf(
        "%s", ComparePlan(*plan, settings.refined_by, 1, measurements).c_str());
  return measurements;
}

}  // namespace baton::examples

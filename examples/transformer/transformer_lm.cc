// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a small language model on the bytes of a text, in this process:
//   transformer_lm --text=shakespeare.txt --device=cuda --dtype=bf16

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/training_log.h"
#include "examples/transformer/language_model.h"
#include "models/nn/graphed_step.h"
#include "models/nn/loss.h"
#include "models/nn/scopes.h"
#include "models/transformer.h"
#include "optim/any.h"
#include "tools/command_line.h"
#include "tools/compute_flags.h"

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: transformer_lm --text=FILE\n"
    "Trains a decoder-only transformer on the bytes of a text.\n"
    "Default: --optimizer=adamw --lr=0.001 --lr_schedule=warm-cosine.";
constexpr int64_t kPrinted = 10;  // lines of losses
constexpr int64_t kWarmUp = 5;    // steps whose time does not count

using Clock = std::chrono::steady_clock;

// Returns the loss on the last tenth of the text, which is not trained on.
absl::StatusOr<double> LossOnTheRest(models::Transformer& model,
                                     const TextTask& task, const Texts& texts,
                                     Device device) {
  const nn::EvalScope evaluating(model);
  const NoGrad no_grad;
  return ValidationLoss(
      texts.validation, task,
      [&](const data::TokenBatch& part) -> absl::StatusOr<double> {
        return nn::CrossEntropy(model.Forward(part.ids.To(device)),
                                part.targets.To(device))
            .tensor()
            .Item();
      });
}

// Returns a step of forward, backward and optimizer, which a GPU replays as one
// graph.
nn::GraphedStep StepOf(models::Transformer& model, optim::Any& optimizer,
                       Device device) {
  return nn::GraphedStep(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        const Variable loss = nn::CrossEntropy(model.Forward(in[0]), in[1]);
        loss.Backward();
        optimizer.Step();
        return {loss.tensor()};
      },
      {device}, model.Parameters());
}

absl::Status Train(models::Transformer& model, const TextTask& task,
                   const data::ByteText& text, Device device) {
  const int64_t every = std::max<int64_t>(task.steps / kPrinted, 1);
  optim::Any optimizer(model.Parameters(), task.stepping.optimizer);
  optimizer.set_schedule(task.stepping.RatesOver(task.steps));
  nn::GraphedStep step = StepOf(model, optimizer, device);
  Generator generator(task.model.seed);
  TrainingLog log("transformer_lm", "tokens",
                  task.stepping.RateOver(task.steps));
  int64_t told = 0;  // the last step that was printed
  Clock::time_point begin;
  for (int64_t i = 1; i <= task.steps; ++i) {
    const data::TokenBatch drawn =
        text.Draw(task.batch, task.model.context, generator);
    const Tensor loss =
        step.Run({drawn.ids.To(device), drawn.targets.To(device)})[0];
    if (i == 1 || i == task.steps || i % every == 0) {
      RETURN_IF_ERROR(tools::Print(
          absl::StrFormat("step %5d: loss %.4f\n", i, loss.Item())));
      log.Add(i, (i - std::exchange(told, i)) * task.tokens(),
              {{"loss", loss.Item()}});
    }
    if (i == kWarmUp) {
      loss.Item();  // waits for a GPU
      begin = Clock::now();
    }
  }
  if (task.steps <= kWarmUp) return absl::OkStatus();
  const std::chrono::duration<double> time = Clock::now() - begin;
  const auto tokens =
      static_cast<double>((task.steps - kWarmUp) * task.tokens());
  return tools::Print(
      absl::StrFormat("%.0f tokens/s\n", tokens / time.count()));
}

absl::Status Main() {
  ASSIGN_OR_RETURN(const TextTask task, TextTaskFromFlags());
  ASSIGN_OR_RETURN(const rpc::Compute compute, tools::ComputeFromFlags());
  if (compute.dtype == DType::kF16)
    return tools::WrongFlag("dtype", "is fp32, tf32 or bf16 here, not fp16");
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Transformer> model,
                   models::Transformer::Make(task.model));
  ASSIGN_OR_RETURN(const Texts texts, ReadTexts(task));
  model->To(compute.device);
  if (IsHalf(compute.dtype)) model->LowerPrecision(compute.dtype);
  RETURN_IF_ERROR(tools::Print(
      absl::StrFormat("%d parameters, %d bytes to learn from\n",
                      model->NumParameters(), texts.training.size())));
  RETURN_IF_ERROR(Train(*model, task, texts.training, compute.device));
  ASSIGN_OR_RETURN(const double loss,
                   LossOnTheRest(*model, task, texts, compute.device));
  return tools::Print(absl::StrFormat("validation loss %.4f\n", loss));
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

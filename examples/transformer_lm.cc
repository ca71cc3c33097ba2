// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a small language model on the bytes of a text:
//   transformer_lm --text=shakespeare.txt --device=cuda --dtype=bf16
// The last tenth of the text is kept apart, to show what was learnt.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/random.h"
#include "core/status.h"
#include "models/data/text.h"
#include "models/nn/graphed_step.h"
#include "models/nn/loss.h"
#include "models/nn/scopes.h"
#include "models/transformer.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "tools/command_line.h"
#include "tools/compute_flags.h"

ABSL_FLAG(std::string, text, "", "file to learn from, plain or compressed");
ABSL_FLAG(int64_t, steps, 200, "batches to train on");
ABSL_FLAG(int64_t, batch, 16, "texts in a batch");
ABSL_FLAG(int64_t, context, 64, "tokens of a text");
ABSL_FLAG(int64_t, width, 128, "of what stands for a token");
ABSL_FLAG(int64_t, layers, 4, "blocks");
ABSL_FLAG(int64_t, vocabulary, baton::data::ByteText::kVocabulary,
          "tokens that the model knows; a text needs 256");
ABSL_FLAG(int64_t, heads, 4, "of attention");
ABSL_FLAG(double, lr, 1e-3, "AdamW's largest rate, after a tenth of the steps");
ABSL_FLAG(uint64_t, seed, 0, "of weights and batches");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: transformer_lm --text=FILE\n"
    "Trains a decoder-only transformer on the bytes of a text.";
constexpr int64_t kPrinted = 10;   // lines of losses
constexpr int64_t kWarmUp = 5;     // steps whose time does not count
constexpr int64_t kValidated = 8;  // batches

using Clock = std::chrono::steady_clock;

struct Texts {
  data::ByteText training, validation;
};

absl::StatusOr<Texts> ReadTexts(int64_t context) {
  const std::string path = absl::GetFlag(FLAGS_text);
  if (path.empty()) return tools::WrongFlag("text", "names a file");
  ASSIGN_OR_RETURN(const data::ByteText all, data::ByteText::Read(path));
  const int64_t kept = all.size() - all.size() / 10;
  if (all.size() - kept <= context)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a tenth of ", all.size(),
                     " bytes is too short for --context=", context));
  return Texts{all.Part(0, kept), all.Part(kept, all.size())};
}

// Mean over windows of the text that lie apart.
double ValidationLoss(models::Transformer& model, const data::ByteText& text,
                      Device device) {
  const nn::EvalScope evaluating(model);
  const NoGrad no_grad;
  const int64_t length = model.options().context;
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t windows = std::min(text.windows(length), kValidated * batch);
  double sum = 0;
  for (int64_t first = 0; first < windows; first += batch) {
    const int64_t count = std::min(batch, windows - first);
    const data::TokenBatch part = text.Windows(first, count, length);
    const Variable loss = nn::CrossEntropy(model.Forward(part.ids.To(device)),
                                           part.targets.To(device));
    sum += loss.tensor().Item() * static_cast<double>(count);
  }
  return sum / static_cast<double>(windows);
}

// Forward, backward and optimizer: one graph where there is a GPU.
nn::GraphedStep StepOf(models::Transformer& model, optim::AdamW& adam,
                       Device device) {
  return nn::GraphedStep(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        const Variable loss = nn::CrossEntropy(model.Forward(in[0]), in[1]);
        loss.Backward();
        adam.Step();
        return {loss.tensor()};
      },
      {device}, model.Parameters());
}

absl::Status Train(models::Transformer& model, const data::ByteText& text,
                   Device device) {
  const int64_t steps = absl::GetFlag(FLAGS_steps);
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t length = model.options().context;
  const int64_t every = std::max<int64_t>(steps / kPrinted, 1);
  const int64_t warm_up = std::max<int64_t>(steps / 10, 1);
  optim::AdamW adam(model.Parameters(), {.lr = absl::GetFlag(FLAGS_lr)});
  adam.set_schedule(optim::WarmUp(
      warm_up,
      optim::CosineLr({.total = std::max<int64_t>(steps - warm_up, 1)})));
  nn::GraphedStep step = StepOf(model, adam, device);
  Generator generator(absl::GetFlag(FLAGS_seed));
  Clock::time_point begin;
  for (int64_t i = 1; i <= steps; ++i) {
    const data::TokenBatch drawn = text.Draw(batch, length, generator);
    const Tensor loss =
        step.Run({drawn.ids.To(device), drawn.targets.To(device)})[0];
    if (i == 1 || i == steps || i % every == 0) {
      RETURN_IF_ERROR(tools::Print(
          absl::StrFormat("step %5d: loss %.4f\n", i, loss.Item())));
    }
    if (i == kWarmUp) {
      loss.Item();  // waits for a GPU
      begin = Clock::now();
    }
  }
  if (steps <= kWarmUp) return absl::OkStatus();
  const std::chrono::duration<double> time = Clock::now() - begin;
  const auto tokens = static_cast<double>((steps - kWarmUp) * batch * length);
  return tools::Print(
      absl::StrFormat("%.0f tokens/s\n", tokens / time.count()));
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_steps) < 1)
    return tools::WrongFlag("steps", "must be 1 or more");
  if (absl::GetFlag(FLAGS_batch) < 1)
    return tools::WrongFlag("batch", "must be 1 or more");
  if (absl::GetFlag(FLAGS_vocabulary) < data::ByteText::kVocabulary)
    return tools::WrongFlag("vocabulary", "must be 256 or more");
  ASSIGN_OR_RETURN(const rpc::Compute compute, tools::ComputeFromFlags());
  if (compute.dtype == DType::kF16)
    return tools::WrongFlag("dtype", "is fp32, tf32 or bf16 here, not fp16");
  ASSIGN_OR_RETURN(
      const std::unique_ptr<models::Transformer> model,
      models::Transformer::Make({.vocabulary = absl::GetFlag(FLAGS_vocabulary),
                                 .context = absl::GetFlag(FLAGS_context),
                                 .width = absl::GetFlag(FLAGS_width),
                                 .layers = absl::GetFlag(FLAGS_layers),
                                 .heads = absl::GetFlag(FLAGS_heads),
                                 .seed = absl::GetFlag(FLAGS_seed)}));
  ASSIGN_OR_RETURN(const Texts texts, ReadTexts(model->options().context));
  model->To(compute.device);
  if (IsHalf(compute.dtype)) model->LowerPrecision(compute.dtype);
  RETURN_IF_ERROR(tools::Print(
      absl::StrFormat("%d parameters, %d bytes to learn from\n",
                      model->NumParameters(), texts.training.size())));
  RETURN_IF_ERROR(Train(*model, texts.training, compute.device));
  return tools::Print(absl::StrFormat(
      "validation loss %.4f\n",
      ValidationLoss(*model, texts.validation, compute.device)));
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}

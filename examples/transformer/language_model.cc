// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/transformer/language_model.h"

#include <algorithm>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, text, "",
          "what to learn from: a file, plain or compressed, or a folder of "
          "files");
ABSL_FLAG(int64_t, steps, 200, "batches to train on");
ABSL_FLAG(int64_t, batch, 16, "texts in a batch");
ABSL_FLAG(int64_t, context, 64, "tokens of a text");
ABSL_FLAG(int64_t, width, 128, "of the embedding and the blocks");
ABSL_FLAG(int64_t, layers, 4, "blocks");
ABSL_FLAG(int64_t, vocabulary, baton::data::ByteText::kVocabulary,
          "tokens that the model knows; a text needs 256");
ABSL_FLAG(int64_t, heads, 4, "of attention");
ABSL_FLAG(bool, tied, true, "the head's weight is the tokens' embedding");
ABSL_FLAG(uint64_t, seed, 0, "of weights and batches");

namespace baton::examples {
namespace {

constexpr int64_t kValidated = 8;  // batches

}  // namespace

absl::StatusOr<TextTask> TextTaskFromFlags() {
  TextTask task;
  task.model = {.vocabulary = absl::GetFlag(FLAGS_vocabulary),
                .context = absl::GetFlag(FLAGS_context),
                .width = absl::GetFlag(FLAGS_width),
                .layers = absl::GetFlag(FLAGS_layers),
                .heads = absl::GetFlag(FLAGS_heads),
                .tied = absl::GetFlag(FLAGS_tied),
                .seed = absl::GetFlag(FLAGS_seed)};
  task.text = absl::GetFlag(FLAGS_text);
  task.batch = absl::GetFlag(FLAGS_batch);
  task.steps = absl::GetFlag(FLAGS_steps);
  ASSIGN_OR_RETURN(task.stepping,
                   SteppingFromFlags({.optimizer = {.kind = "adamw"},
                                      .schedule = "warm-cosine"}));
  if (task.text.empty())
    return tools::WrongFlag("text",
                            "is missing: give a file or a folder of files");
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_steps, FLAGS_batch));
  RETURN_IF_ERROR(
      tools::AtLeast(data::ByteText::kVocabulary, FLAGS_vocabulary));
  RETURN_IF_ERROR(models::TransformerUnits(task.model).status());
  return task;
}

absl::StatusOr<Texts> ReadTexts(const TextTask& task) {
  ASSIGN_OR_RETURN(const data::ByteText all, data::ByteText::Read(task.text));
  const int64_t kept = all.size() - all.size() / 10;
  if (all.size() - kept <= task.model.context)
    return absl::InvalidArgumentError(
        absl::StrCat(task.text, ": a tenth of ", all.size(),
                     " bytes is too short for --context=", task.model.context));
  return Texts{all.Part(0, kept), all.Part(kept, all.size())};
}

absl::StatusOr<double> ValidationLoss(
    const data::ByteText& text, const TextTask& task,
    const std::function<absl::StatusOr<double>(const data::TokenBatch&)>&
        loss_of) {
  const int64_t length = task.model.context;
  const int64_t windows =
      std::min(text.windows(length), kValidated * task.batch);
  double sum = 0;
  for (int64_t first = 0; first < windows; first += task.batch) {
    const int64_t count = std::min(task.batch, windows - first);
    ASSIGN_OR_RETURN(const double loss,
                     loss_of(text.Windows(first, count, length)));
    sum += loss * static_cast<double>(count);
  }
  return sum / static_cast<double>(windows);
}

}  // namespace baton::examples

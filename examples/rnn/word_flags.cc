// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_flags.h"

#include "absl/flags/flag.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, data, "",
          "a text to learn from: a file, plain or compressed, of words parted "
          "by spaces");
ABSL_FLAG(std::string, held_out, "",
          "another, on which the perplexity is told; default the last tenth of "
          "--data");
ABSL_FLAG(int64_t, vocabulary, 10'000,
          "words that the model knows: the most frequent ones");
ABSL_FLAG(int64_t, width, 128, "of the embedding and of the LSTM");
ABSL_FLAG(int64_t, layers, 1, "of the LSTM");
ABSL_FLAG(double, dropout, 0.2, "before the LSTM and behind it");
ABSL_FLAG(int64_t, batch, 20, "columns of the text that are read side by side");
ABSL_FLAG(int64_t, length, 35, "words of each column that a step learns from");
ABSL_FLAG(int64_t, epochs, 1, "times that the text is read");
ABSL_FLAG(int64_t, steps, 0, "most steps; 0: all of the epochs");
ABSL_FLAG(uint64_t, seed, 1, "of weights and dropout");

namespace baton::examples {

absl::Status CheckWordFlags() {
  if (absl::GetFlag(FLAGS_data).empty())
    return tools::WrongFlag("data", "is missing: give the text to learn from");
  RETURN_IF_ERROR(tools::AtLeast(2, FLAGS_vocabulary));
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_width, FLAGS_layers, FLAGS_batch,
                                 FLAGS_length, FLAGS_epochs));
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_steps));
  const double dropout = absl::GetFlag(FLAGS_dropout);
  if (dropout < 0 || dropout >= 1)
    return tools::WrongFlag("dropout", "must be 0 or more, and less than 1");
  return absl::OkStatus();
}

WordFiles WordFilesFromFlags() {
  return {.data = absl::GetFlag(FLAGS_data),
          .held_out = absl::GetFlag(FLAGS_held_out)};
}

absl::StatusOr<WordTexts> ReadWordsFromFlags() {
  return ReadWords(absl::GetFlag(FLAGS_data), absl::GetFlag(FLAGS_held_out),
                   absl::GetFlag(FLAGS_vocabulary));
}

WordModelOptions WordModelFromFlags() {
  return {.vocabulary = absl::GetFlag(FLAGS_vocabulary),
          .width = absl::GetFlag(FLAGS_width),
          .layers = absl::GetFlag(FLAGS_layers),
          .dropout = absl::GetFlag(FLAGS_dropout),
          .seed = absl::GetFlag(FLAGS_seed)};
}

Reading ReadingFromFlags() {
  return {.columns = absl::GetFlag(FLAGS_batch),
          .length = absl::GetFlag(FLAGS_length),
          .epochs = absl::GetFlag(FLAGS_epochs),
          .steps = absl::GetFlag(FLAGS_steps)};
}

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/rnn/word_experiment.h"
#include "examples/rnn/word_model.h"
#include "examples/rnn/word_text.h"

namespace baton::examples {

// From --data, --held_out, --vocabulary, --width, --layers, --dropout, --batch,
// --length, --epochs, --steps and --seed, which programs that train on words
// share. InvalidArgument for one that is wrong.
absl::Status CheckWordFlags();

struct WordFiles {
  std::string data, held_out;
};
WordFiles WordFilesFromFlags();
absl::StatusOr<WordTexts> ReadWordsFromFlags();
// All words that the flags ask for count as known: a text may have fewer.
WordModelOptions WordModelFromFlags();
Reading ReadingFromFlags();

}  // namespace baton::examples

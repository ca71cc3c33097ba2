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

// Checks the flags that programs which train on words share: --data,
// --held_out, --vocabulary, --width, --layers, --dropout, --batch, --length,
// --epochs, --steps and --seed. InvalidArgument names the one that is wrong.
absl::Status CheckWordFlags();

struct WordFiles {
  std::string data, held_out;
};
WordFiles WordFilesFromFlags();
absl::StatusOr<WordTexts> ReadWordsFromFlags();
// The vocabulary has as many words as the flags say, even if a text has fewer.
WordModelOptions WordModelFromFlags();
Reading ReadingFromFlags();

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
#include "examples/support/saving.h"

namespace baton::examples {

struct Reading {
  int64_t columns = 20;  // read side by side
  int64_t length = 35;   // words of a column in a piece
  int64_t epochs = 1;
  int64_t steps = 0;  // at most; 0: those of all epochs
};

// Returns the number of pieces that a training reads.
int64_t StepsOf(const Reading& reading, const WordTexts& texts);

struct WordResult {
  std::vector<double> losses;        // of each step
  std::vector<double> seconds;       // of each step
  std::vector<double> perplexities;  // on the held-out text, after each epoch
  int64_t resumed_from = 0;          // the step before the first of these
  int64_t lost = 0;                  // number of workers lost meanwhile
};

// Makes the first trainer, or the next one after the last one's worker was
// lost.
using MakeWordTrainer =
    std::function<absl::StatusOr<std::unique_ptr<WordTrainer>>()>;
// TrainOnWords calls `on_step` with the loss and words of each step. If the
// trainer's worker is lost, the next trainer continues from the last
// checkpoint, or from the beginning if there is none; its steps replace the
// lost ones.
absl::StatusOr<WordResult> TrainOnWords(
    const MakeWordTrainer& make, const WordTexts& texts, const Reading& reading,
    const Saving& saving,
    const std::function<void(double loss, int64_t words)>& on_step);

// Returns the exponential of the mean loss over all words.
absl::StatusOr<double> PerplexityOf(WordReader& reader, const Tensor& words,
                                    const Reading& reading);

}  // namespace baton::examples

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
  int64_t columns = 20;  // that are read side by side
  int64_t length = 35;   // words of a piece
  int64_t epochs = 1;
  int64_t steps = 0;  // in all, at most; 0: all of the epochs
};

// Pieces that a training goes through.
int64_t StepsOf(const Reading& reading, const WordTexts& texts);

struct WordResult {
  std::vector<double> losses;        // of each step
  std::vector<double> seconds;       // of each step
  std::vector<double> perplexities;  // on what was held out, after each epoch
  int64_t resumed_from = 0;          // the step before the first of these
  int64_t lost = 0;                  // workers, meanwhile
};

// `on_step` hears of each step's loss and words at once. Where the trainer's
// worker is lost the next one goes on from what was saved last, or from the
// beginning where nothing is saved: its steps take the place of those that were
// lost.
using MakeWordTrainer =
    std::function<absl::StatusOr<std::unique_ptr<WordTrainer>>()>;
absl::StatusOr<WordResult> TrainOnWords(
    const MakeWordTrainer& make, const WordTexts& texts, const Reading& reading,
    const Saving& saving,
    const std::function<void(double loss, int64_t words)>& on_step);

// The exponential of the mean loss over all of the words.
absl::StatusOr<double> PerplexityOf(WordTrainer& trainer, const Tensor& words,
                                    const Reading& reading);

}  // namespace baton::examples

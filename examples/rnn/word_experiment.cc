// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_experiment.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/status.h"

namespace baton::examples {

int64_t StepsOf(const Reading& reading, const WordTexts& texts) {
  const TextColumns columns(texts.training, reading.columns);
  const int64_t all = reading.epochs * columns.pieces(reading.length);
  return reading.steps == 0 ? all : std::min(all, reading.steps);
}

absl::StatusOr<WordResult> TrainOnWords(
    WordTrainer& trainer, const WordTexts& texts, const Reading& reading,
    const std::function<void(double loss, int64_t words)>& on_step) {
  using Clock = std::chrono::steady_clock;
  const TextColumns columns(texts.training, reading.columns);
  const int64_t pieces = columns.pieces(reading.length);
  const int64_t steps = StepsOf(reading, texts);
  WordResult result;
  for (int64_t step = 0; step < steps; ++step) {
    if (step % pieces == 0) trainer.Rewind();
    const data::TokenBatch piece = columns.Piece(step % pieces, reading.length);
    const auto begin = Clock::now();
    ASSIGN_OR_RETURN(const double loss, trainer.TrainStep(piece));
    result.losses.push_back(loss);
    result.seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
    on_step(loss, piece.targets.numel());
    if ((step + 1) % pieces != 0 && step + 1 != steps) continue;
    ASSIGN_OR_RETURN(const double perplexity,
                     PerplexityOf(trainer, texts.held_out, reading));
    result.perplexities.push_back(perplexity);
  }
  return result;
}

absl::StatusOr<double> PerplexityOf(WordTrainer& trainer, const Tensor& words,
                                    const Reading& reading) {
  const TextColumns columns(words, reading.columns);
  RETURN_IF_ERROR(trainer.SetTraining(false));
  trainer.Rewind();
  double sum = 0;
  int64_t read = 0;
  for (int64_t i = 0; i < columns.pieces(reading.length); ++i) {
    const data::TokenBatch piece = columns.Piece(i, reading.length);
    ASSIGN_OR_RETURN(const double loss, trainer.LossOf(piece));
    sum += loss * static_cast<double>(piece.targets.numel());
    read += piece.targets.numel();
  }
  RETURN_IF_ERROR(trainer.SetTraining(true));
  return std::exp(sum / static_cast<double>(read));
}

}  // namespace baton::examples

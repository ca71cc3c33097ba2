// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_experiment.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/log.h"
#include "core/status.h"
#include "examples/support/participants.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

// A training that several trainers may continue, one after the other.
class WordRun {
 public:
  WordRun(const WordTexts& texts, const Reading& reading, const Saving& saving,
          const std::function<void(double loss, int64_t words)>& on_step)
      : texts_(texts),
        reading_(reading),
        saving_(saving),
        on_step_(on_step),
        columns_(texts.training, reading.columns),
        pieces_(columns_.pieces(reading.length)),
        steps_(StepsOf(reading, texts)) {}

  // Trains until the end.
  absl::Status GoOn(WordTrainer& trainer) {
    std::unique_ptr<dist::Checkpointer> checkpoints;
    step_ = 0;
    if (saving_.on()) {
      ASSIGN_OR_RETURN(checkpoints,
                       trainer.MakeCheckpointer(saving_.checkpoints));
      RETURN_IF_ERROR(Resume(trainer, *checkpoints));
    }
    ForgetFrom(step_);
    while (step_ < steps_) {
      RETURN_IF_ERROR(Step(trainer));
      if (checkpoints != nullptr && IsDue())
        RETURN_IF_ERROR(checkpoints->Save(step_, trainer.ExportState()));
    }
    return checkpoints == nullptr ? absl::OkStatus() : checkpoints->Wait();
  }
  void CountLoss(const absl::Status& why) {
    ++result_.lost;
    LogWarning("the worker of embedding and decoder is lost after step ", step_,
               ": ", why.ToString());
  }
  const WordResult& result() const { return result_; }

 private:
  absl::Status Resume(WordTrainer& trainer, dist::Checkpointer& checkpoints) {
    if (result_.lost == 0 && saving_.resume == Saving::Resume::kNo)
      return absl::OkStatus();
    const auto resumed = checkpoints.Resume(
        result_.lost == 0 ? saving_.if_broken() : IfBroken::kUsePrevious);
    if (absl::IsNotFound(resumed.status())) return absl::OkStatus();
    RETURN_IF_ERROR(resumed.status());
    step_ = resumed->step;
    trainer.ImportState(resumed->trainer);
    if (result_.lost == 0) result_.resumed_from = step_;
    return absl::OkStatus();
  }
  // Drops the results from this step on, because these steps are repeated.
  void ForgetFrom(int64_t step) {
    const int64_t from = result_.resumed_from;
    const auto keep = [](int64_t count, std::vector<double>& values) {
      if (count < static_cast<int64_t>(values.size()))
        values.resize(static_cast<size_t>(count));
    };
    keep(step - from, result_.losses);
    keep(step - from, result_.seconds);
    keep(step / pieces_ - from / pieces_, result_.perplexities);
  }
  absl::Status Step(WordTrainer& trainer) {
    const int64_t number = step_ % pieces_;
    if (number == 0) trainer.Rewind();
    const data::TokenBatch piece = columns_.Piece(number, reading_.length);
    const auto begin = Clock::now();
    ASSIGN_OR_RETURN(const double loss, trainer.TrainStep(piece));
    result_.losses.push_back(loss);
    result_.seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
    ++step_;
    on_step_(loss, piece.targets.numel());
    if (!IsEndOfEpoch()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const double perplexity,
                     PerplexityOf(trainer, texts_.held_out, reading_));
    result_.perplexities.push_back(perplexity);
    return absl::OkStatus();
  }
  bool IsEndOfEpoch() const { return step_ % pieces_ == 0 || step_ == steps_; }
  bool IsDue() const {
    return IsEndOfEpoch() || (saving_.every > 0 && step_ % saving_.every == 0);
  }

  const WordTexts& texts_;
  const Reading& reading_;
  const Saving& saving_;
  const std::function<void(double loss, int64_t words)>& on_step_;
  const TextColumns columns_;
  const int64_t pieces_;  // in an epoch
  const int64_t steps_;
  int64_t step_ = 0;  // number of steps done
  WordResult result_;
};

}  // namespace

int64_t StepsOf(const Reading& reading, const WordTexts& texts) {
  const TextColumns columns(texts.training, reading.columns);
  const int64_t all = reading.epochs * columns.pieces(reading.length);
  return reading.steps == 0 ? all : std::min(all, reading.steps);
}

absl::StatusOr<WordResult> TrainOnWords(
    const MakeWordTrainer& make, const WordTexts& texts, const Reading& reading,
    const Saving& saving,
    const std::function<void(double loss, int64_t words)>& on_step) {
  WordRun run(texts, reading, saving, on_step);
  for (;;) {
    ASSIGN_OR_RETURN(const std::unique_ptr<WordTrainer> trainer, make());
    const absl::Status status = run.GoOn(*trainer);
    if (status.ok()) return run.result();
    if (!IsLoss(status)) return status;
    run.CountLoss(status);
  }
}

absl::StatusOr<double> PerplexityOf(WordReader& reader, const Tensor& words,
                                    const Reading& reading) {
  const TextColumns columns(words, reading.columns);
  RETURN_IF_ERROR(reader.SetTraining(false));
  reader.Rewind();
  double sum = 0;
  int64_t read = 0;
  for (int64_t i = 0; i < columns.pieces(reading.length); ++i) {
    const data::TokenBatch piece = columns.Piece(i, reading.length);
    ASSIGN_OR_RETURN(const double loss, reader.LossOf(piece));
    sum += loss * static_cast<double>(piece.targets.numel());
    read += piece.targets.numel();
  }
  RETURN_IF_ERROR(reader.SetTraining(true));
  return std::exp(sum / static_cast<double>(read));
}

}  // namespace baton::examples

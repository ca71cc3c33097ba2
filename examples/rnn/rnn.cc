// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a language model over words. The trainer has the LSTM; a server has
// the large parts, the embedding and the decoder:
//   baton-run --workers=1 --worker_program=rnn -- rnn
//       --data=wikitext2-valid.txt --held_out=wikitext2-test.txt
//       --variants=single,remote

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "examples/rnn/word_experiment.h"
#include "examples/rnn/word_flags.h"
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/progress.h"
#include "examples/support/saving_flags.h"
#include "examples/support/training_log.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(double, clip_norm, 0,
          "of the gradients of all parameters together; 0: no limit");
ABSL_FLAG(std::vector<std::string>, variants, {"remote"},
          "single, all in the trainer, and remote, embedding and decoder at "
          "the first worker, one after the other");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a language model over words, whose embedding and decoder are at a\n"
    "worker and whose LSTM is here. When the worker is lost another one goes "
    "on,\n"
    "from what was saved into --checkpoint_dir.\n"
    "Default: --optimizer=adam --lr=0.002.";

struct Task {
  WordTraining training;
  std::function<double(int64_t)> rate;
  Reading reading;
  Saving saving;
};

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(CheckWordFlags());
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_clip_norm));
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    RETURN_IF_ERROR(
        tools::CheckWord("--variants", variant, {"single", "remote"}));
  }
  ASSIGN_OR_RETURN(const Saving saving, SavingFromFlags());
  if (!saving.weights.empty())
    return tools::WrongFlag("weights", "is of no use here");
  return SteppingFromFlags({.optimizer = WordTraining().optimizer}).status();
}

absl::StatusOr<Task> TaskFromFlags(const WordTexts& texts) {
  Task task;
  task.training.model = WordModelFromFlags();
  task.training.model.vocabulary = texts.vocabulary;
  ASSIGN_OR_RETURN(const Stepping stepping,
                   SteppingFromFlags({.optimizer = task.training.optimizer}));
  task.training.optimizer = stepping.optimizer;
  const double clip = absl::GetFlag(FLAGS_clip_norm);
  if (clip > 0) task.training.clip_norm = clip;
  task.reading = ReadingFromFlags();
  task.training.rates = stepping.RatesOver(StepsOf(task.reading, texts));
  task.rate = stepping.RateOver(StepsOf(task.reading, texts));
  ASSIGN_OR_RETURN(task.saving, SavingFromFlags());
  RETURN_IF_ERROR(PrepareToSave(task.saving));
  return task;
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent, const std::string& variant,
                                  const Task& task, const WordTexts& texts) {
  RemoteWordTrainers remote(agent, task.training);
  const bool single = variant == "single";
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<WordTrainer>> {
    if (single) return MakeLocalWordTrainer(task.training);
    return remote.MakeNext();
  };
  Progress progress(variant, "words", StepsOf(task.reading, texts));
  TrainingLog log(variant, "words", task.rate);
  ASSIGN_OR_RETURN(
      const WordResult result,
      TrainOnWords(make, texts, task.reading, single ? Saving() : task.saving,
                   [&](double loss, int64_t words) {
                     progress.Step(loss, words);
                     log.Step(loss, words);
                   }));
  if (result.losses.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "nothing is left to be done after step ", result.resumed_from));
  }
  return Measurement{.variant = variant,
                     .items = task.reading.columns * task.reading.length,
                     .seconds = result.seconds,
                     .loss = result.losses.back(),
                     .details = {{"perplexity", result.perplexities.back()},
                                 {"perplexities", result.perplexities},
                                 {"vocabulary", texts.vocabulary},
                                 {"resumed_from", result.resumed_from},
                                 {"lost_workers", result.lost},
                                 {"losses", result.losses}},
                     .item = "words"};
}

absl::Status Run(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(const WordTexts texts, ReadWordsFromFlags());
  ASSIGN_OR_RETURN(const Task task, TaskFromFlags(texts));
  Findings findings;
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    ASSIGN_OR_RETURN(Measurement measured, Train(agent, variant, task, texts));
    absl::StrAppendFormat(&findings.further,
                          "%s: perplexity %.2f on %d words held out\n", variant,
                          std::get<double>(measured.details.front().value),
                          texts.held_out.numel());
    findings.measurements.push_back(std::move(measured));
  }
  findings.charts = {
      {"loss", LossChart("A model of words", findings.measurements)}};
  return Tell(findings);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(argc, argv,
                                   {.workers = 1,
                                    .arguments = "--data=FILE",
                                    .about = baton::examples::kAbout,
                                    .train = baton::examples::Run,
                                    .check = baton::examples::CheckFlags,
                                    .add = baton::examples::RegisterWordModel});
}

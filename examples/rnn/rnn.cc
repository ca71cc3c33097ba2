// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A language model over words, of which the trainer has the LSTM, and a server
// what is large, the table of words and the decoder:
//   baton-run --workers=1 --worker_program=rnn -- rnn
//   --data=wikitext2-valid.txt
//       --held_out=wikitext2-test.txt --variants=single,remote

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
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
#include "examples/support/charts.h"
#include "examples/support/cluster_program.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/progress.h"
#include "examples/support/saving.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, data, "",
          "a text to learn from: a file, plain or compressed, of words parted "
          "by spaces");
ABSL_FLAG(std::string, held_out, "",
          "another, on which the perplexity is told; default the last tenth of "
          "--data");
ABSL_FLAG(int64_t, vocabulary, 10'000, "the most frequent words are known");
ABSL_FLAG(int64_t, width, 128, "of what stands for a word, and of the LSTM");
ABSL_FLAG(int64_t, layers, 1, "of the LSTM");
ABSL_FLAG(double, dropout, 0.2, "before the LSTM and behind it");
ABSL_FLAG(int64_t, batch, 20, "columns of the text that are read side by side");
ABSL_FLAG(int64_t, length, 35, "words of each that a step learns from");
ABSL_FLAG(int64_t, epochs, 1, "times that the text is read");
ABSL_FLAG(int64_t, steps, 0, "at most; 0: all of the epochs");
ABSL_FLAG(double, clip_norm, 0,
          "of the gradients of all parameters together; 0: no limit");
ABSL_FLAG(std::vector<std::string>, variants, {"remote"},
          "single, all in the trainer, and remote, embedding and decoder at "
          "the first worker, one after the other");
ABSL_FLAG(uint64_t, seed, 1, "of weights and dropout");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: baton-run --workers=1 --worker_program=rnn -- rnn --data=FILE\n"
    "Trains a language model over words, whose embedding and decoder are at a\n"
    "worker and whose LSTM is here. When the worker is lost another one goes "
    "on,\n"
    "from what was saved into --checkpoint_dir.";

struct Task {
  WordTraining training;
  Reading reading;
  Saving saving;
};

absl::Status CheckFlags() {
  if (absl::GetFlag(FLAGS_data).empty())
    return tools::WrongFlag("data", "names the text to learn from");
  if (absl::GetFlag(FLAGS_vocabulary) < 2)
    return tools::WrongFlag("vocabulary", "is 2 or more");
  for (const auto* flag : {&FLAGS_width, &FLAGS_layers, &FLAGS_batch,
                           &FLAGS_length, &FLAGS_epochs}) {
    if (absl::GetFlag(*flag) < 1) {
      return absl::InvalidArgumentError(
          "--width, --layers, --batch, --length and --epochs are 1 or more");
    }
  }
  if (absl::GetFlag(FLAGS_steps) < 0)
    return tools::WrongFlag("steps", "is 0 or more");
  if (absl::GetFlag(FLAGS_clip_norm) < 0)
    return tools::WrongFlag("clip_norm", "is 0 or more");
  const double dropout = absl::GetFlag(FLAGS_dropout);
  if (dropout < 0 || dropout >= 1)
    return tools::WrongFlag("dropout", "is 0 or more, and less than 1");
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    if (variant != "single" && variant != "remote")
      return tools::WrongFlag("variants", "is a list of single and remote");
  }
  ASSIGN_OR_RETURN(const Saving saving, SavingFromFlags());
  if (!saving.weights.empty())
    return tools::WrongFlag("weights", "is of no use here");
  return SteppingFromFlags({.optimizer = WordTraining().optimizer}).status();
}

absl::StatusOr<Task> TaskFromFlags(const WordTexts& texts) {
  Task task;
  task.training.model = {.vocabulary = texts.vocabulary,
                         .width = absl::GetFlag(FLAGS_width),
                         .layers = absl::GetFlag(FLAGS_layers),
                         .dropout = absl::GetFlag(FLAGS_dropout),
                         .seed = absl::GetFlag(FLAGS_seed)};
  ASSIGN_OR_RETURN(const Stepping stepping,
                   SteppingFromFlags({.optimizer = task.training.optimizer}));
  task.training.optimizer = stepping.optimizer;
  const double clip = absl::GetFlag(FLAGS_clip_norm);
  if (clip > 0) task.training.clip_norm = clip;
  task.reading = {.columns = absl::GetFlag(FLAGS_batch),
                  .length = absl::GetFlag(FLAGS_length),
                  .epochs = absl::GetFlag(FLAGS_epochs),
                  .steps = absl::GetFlag(FLAGS_steps)};
  task.training.rates = stepping.RatesOver(StepsOf(task.reading, texts));
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
  ASSIGN_OR_RETURN(
      const WordResult result,
      TrainOnWords(
          make, texts, task.reading, single ? Saving() : task.saving,
          [&](double loss, int64_t words) { progress.Step(loss, words); }));
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

std::string LossChart(const std::vector<Measurement>& measurements) {
  std::vector<Curve> curves;
  for (const Measurement& measured : measurements) {
    Curve curve{.name = measured.variant};
    curve.y = std::get<std::vector<double>>(measured.details.back().value);
    for (size_t step = 1; step <= curve.y.size(); ++step)
      curve.x.push_back(static_cast<double>(step));
    curves.push_back(std::move(curve));
  }
  return CurvesChart("loss", "A model of words", "steps", "loss", curves);
}

absl::Status Run(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(
      const WordTexts texts,
      ReadWords(absl::GetFlag(FLAGS_data), absl::GetFlag(FLAGS_held_out),
                absl::GetFlag(FLAGS_vocabulary)));
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
  findings.charts = {{"loss", LossChart(findings.measurements)}};
  return Tell(findings);
}

absl::Status Main() {
  rpc::Registry registry;
  RegisterWordModel(registry);
  return RunInCluster(std::move(registry), CheckFlags, Run);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::examples::Main());
}

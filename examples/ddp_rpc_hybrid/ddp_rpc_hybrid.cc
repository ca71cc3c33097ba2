// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a language model over words, whose embedding is at parameter servers.
// Each trainer has a copy of the rest, which is trained data-parallel:
//   baton-run --workers=3 --worker_program=ddp_rpc_hybrid
//       -- ddp_rpc_hybrid --data=wikitext2-valid.txt
//       --held_out=wikitext2-test.txt --variants=single,ddp
// The first --servers workers serve, the others train. The process that
// baton-run calls the trainer only starts them and reports.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"
#include "examples/ddp_rpc_hybrid/hybrid_training.h"
#include "examples/rnn/word_flags.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/participants.h"
#include "examples/support/progress.h"
#include "examples/support/trace_flag.h"
#include "examples/support/training_log.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"
#include "tools/output_file.h"
#include "tools/view/cluster_trace.h"

ABSL_FLAG(int, servers, 1, "workers that keep the embedding's rows");
ABSL_FLAG(bool, backups, false, "every row has a second server");
ABSL_FLAG(std::string, row_optimizer, "sparse-adam",
          "what steps the rows, and its options; --optimizer steps the rest");
ABSL_FLAG(double, row_lr, 0.002, "the rate of the rows");
ABSL_FLAG(std::vector<std::string>, variants, {"ddp"},
          "single, the first trainer alone, and ddp, all of them, one after "
          "the other");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a language model over words. The embedding is at parameter\n"
    "servers; each trainer has a copy of the rest, and learns from its own\n"
    "columns of the text. Trainers may be lost and join meanwhile.\n"
    "Default: --optimizer=adam --lr=0.002.";

absl::StatusOr<optim::AnyOptions> RowOptimizer() {
  auto options = optim::AnyOptions::Parse(absl::GetFlag(FLAGS_row_optimizer));
  if (!options.ok())
    return tools::WrongFlag("row_optimizer",
                            std::string(options.status().message()));
  options->lr = absl::GetFlag(FLAGS_row_lr);
  return options;
}

absl::StatusOr<optim::AnyOptions> RestOptimizer() {
  return OptimizerFromFlags(WordTraining().optimizer);
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(tools::CheckOutputs(FLAGS_trace));
  RETURN_IF_ERROR(CheckWordFlags());
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_servers));
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    RETURN_IF_ERROR(tools::CheckWord("--variants", variant, {"single", "ddp"}));
  }
  RETURN_IF_ERROR(RowOptimizer().status());
  return RestOptimizer().status();
}

absl::StatusOr<dist::ServerOptions> ServerOptionsFor(const HybridTask& task,
                                                     int64_t vocabulary) {
  dist::ServerOptions options;
  options.mode = dist::Consistency::kBulkSynchronous;
  options.trainers = static_cast<int32_t>(task.trainers.size());
  options.trainer_workers = task.trainers;
  options.backups = absl::GetFlag(FLAGS_backups);
  ASSIGN_OR_RETURN(const optim::AnyOptions rule, RowOptimizer());
  options.tables = {
      {.name = kWords,
       .width = task.model.width,
       .rows = vocabulary,
       .start = dist::RowStart::kNormal,
       .scale = 1,
       .seed = task.model.SeedOf(WordModelOptions::Part::kEmbedding),
       .rule = rule}};
  return options;
}

absl::StatusOr<HybridTask> TaskFromFlags(const rpc::Agent& agent,
                                         const Crew& crew) {
  HybridTask task;
  task.model = WordModelFromFlags();
  ASSIGN_OR_RETURN(task.optimizer, RestOptimizer());
  const WordFiles files = WordFilesFromFlags();
  task.data = files.data;
  task.held_out = files.held_out;
  for (const std::string& name : crew.trainers) {
    const auto trainer = agent.Find(name);
    if (trainer.ok()) task.trainers.push_back(*trainer);
  }
  const Reading reading = ReadingFromFlags();
  task.columns = reading.columns * static_cast<int64_t>(crew.trainers.size());
  task.length = reading.length;
  return task;
}

// The results of a training, by step. Confined to one thread.
class Record {
 public:
  // Of a training of so many steps.
  Record(const std::string& variant, int64_t steps, double rate)
      : variant_(variant),
        progress_(variant, "words", steps),
        log_(variant, "words", rate) {}

  void Add(const HybridStep& step) {
    if (step.trainers != trainers) {
      trainers = step.trainers;
      std::fprintf(stderr, "%s  step %lld  %d trainers\n", variant_.c_str(),
                   static_cast<long long>(step.step + 1), trainers);
    }
    progress_.Step(step.loss, step.words);
    log_.Step(step.loss, step.words);
    losses.push_back(step.loss);
    seconds.push_back(step.seconds);
    waited_s += step.waited_s;
    if (words == 0) words = step.words;
  }

  std::vector<double> losses, seconds, perplexities;
  double waited_s = 0;
  int64_t words = 0;     // of the first step
  int32_t trainers = 0;  // in the last step

 private:
  const std::string variant_;
  Progress progress_;
  TrainingLog log_;
};

// Trains until this step, and traces if that is asked for.
absl::Status TrainUntil(rpc::Agent& agent, HybridTraining& training,
                        int64_t step, bool traced, Record& record) {
  const auto train = [&] {
    return training.TrainUntil(
        step, [&](const HybridStep& taken) { record.Add(taken); });
  };
  if (!traced) return train();
  return tools::WriteTraceOf(agent, absl::GetFlag(FLAGS_trace), train);
}

absl::Status TrainAll(rpc::Agent& agent, HybridTraining& training,
                      int64_t steps, int64_t pieces, Record& record) {
  // The first step is the slowest.
  const int64_t traced =
      absl::GetFlag(FLAGS_trace).empty() ? 0 : std::min<int64_t>(2, steps);
  if (traced > 1)
    RETURN_IF_ERROR(TrainUntil(agent, training, traced - 1, false, record));
  if (traced > 0)
    RETURN_IF_ERROR(TrainUntil(agent, training, traced, true, record));
  for (int64_t end = 0; end < steps;) {
    end = std::min(end + pieces, steps);
    if (end > traced)
      RETURN_IF_ERROR(TrainUntil(agent, training, end, false, record));
    ASSIGN_OR_RETURN(const double perplexity, training.Perplexity());
    record.perplexities.push_back(perplexity);
  }
  return training.CheckEqual();
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent, const std::string& variant,
                                  const std::string& run,
                                  const WordTexts& texts) {
  ASSIGN_OR_RETURN(Crew crew, CrewOf(agent, absl::GetFlag(FLAGS_servers)));
  const bool single = variant == "single";
  if (single) crew.trainers.resize(1);
  RETURN_IF_ERROR(tools::Print(
      absl::StrCat(absl::StrJoin(crew.servers, ", "), " serves\n")));
  HybridTraining::Options options{.task = {}, .servers = {}};
  ASSIGN_OR_RETURN(options.task, TaskFromFlags(agent, crew));
  options.task.run = run;
  ASSIGN_OR_RETURN(options.servers,
                   ServerOptionsFor(options.task, texts.vocabulary));
  if (single) options.most_trainers = 1;
  Reading reading = ReadingFromFlags();
  reading.columns = options.task.columns;
  const int64_t steps = StepsOf(reading, texts);
  Record record(variant, steps, options.task.optimizer.lr);
  ASSIGN_OR_RETURN(const auto training,
                   HybridTraining::Make(agent, crew, options));
  RETURN_IF_ERROR(TrainAll(
      agent, *training, steps,
      TextColumns(texts.training, reading.columns).pieces(reading.length),
      record));
  double seconds = 0;
  for (const double step : record.seconds) seconds += step;
  return Measurement{
      .variant = variant,
      .items = record.words,
      .seconds = record.seconds,
      .loss = record.losses.back(),
      .details = {{"perplexity", record.perplexities.back()},
                  {"perplexities", record.perplexities},
                  {"servers", static_cast<int64_t>(crew.servers.size())},
                  {"trainers", static_cast<int64_t>(crew.trainers.size())},
                  {"last_trainers", int64_t{record.trainers}},
                  {"lost_trainers", training->lost_trainers()},
                  {"vocabulary", texts.vocabulary},
                  {"waited_share", record.waited_s / seconds},
                  {"losses", record.losses}},
      .item = "words"};
}

absl::Status Run(rpc::Agent& agent) {
  RETURN_IF_ERROR(CheckCompute(agent, /*gpus=*/false));
  ASSIGN_OR_RETURN(const WordTexts texts, ReadWordsFromFlags());
  Findings findings;
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    const std::string run =
        absl::StrCat(variant, findings.measurements.size());  // all differ
    ASSIGN_OR_RETURN(Measurement measured, Train(agent, variant, run, texts));
    absl::StrAppendFormat(&findings.further,
                          "%s: perplexity %.2f on %d words held out\n", variant,
                          std::get<double>(measured.details.front().value),
                          texts.held_out.numel());
    findings.measurements.push_back(std::move(measured));
  }
  findings.further +=
      NoteEfficiency(findings.measurements, "single", "trainers") +
      FormatShares(findings.measurements, "waited_share",
                   "waits for gradients of others");
  findings.charts = {
      {"loss", LossChart("Rows at servers, the rest data-parallel",
                         findings.measurements)}};
  return Tell(findings);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(argc, argv,
                                   {.workers = 3,
                                    .arguments = "--data=FILE",
                                    .about = baton::examples::kAbout,
                                    .train = baton::examples::Run,
                                    .check = baton::examples::CheckFlags,
                                    .add = baton::examples::RegisterHybrid});
}

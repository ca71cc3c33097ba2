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
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"
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
    "columns of the text.\n"
    "Default: --optimizer=adam --lr=0.002.";

constexpr std::chrono::milliseconds kLook{100};

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

// Returns a future that fails once one of the workers is lost or has left, and
// names it. Otherwise it never becomes ready.
Future<void> LossOf(rpc::Agent& agent,
                    const std::vector<std::string>& workers) {
  const Promise<void> lost;
  agent.WatchMembers([lost, workers](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kLost &&
        event.kind != rpc::MemberEvent::Kind::kLeft)
      return;
    for (const std::string& worker : workers) {
      if (worker != event.worker.name) continue;
      lost.Set(absl::UnavailableError(absl::StrCat(
          "server ", worker, " is lost: ", event.cause.message())));
    }
  });
  return lost.future();
}

// The servers and trainers of one variant. Must not outlive the agent. Confined
// to one thread.
class HybridTraining {
 public:
  static absl::StatusOr<std::unique_ptr<HybridTraining>> Make(
      rpc::Agent& agent, const Crew& crew, const HybridTask& task,
      int64_t vocabulary) {
    std::unique_ptr<HybridTraining> made(new HybridTraining);
    // With backups, a lost server is replaced by the one that backs it up.
    made->lost_ =
        LossOf(agent, absl::GetFlag(FLAGS_backups) ? std::vector<std::string>()
                                                   : crew.servers);
    ASSIGN_OR_RETURN(const dist::ServerOptions options,
                     ServerOptionsFor(task, vocabulary));
    ASSIGN_OR_RETURN(made->servers_, dist::ParameterServers::Make(
                                         agent, crew.servers, options, {}));
    std::vector<Future<RRef<HybridTrainer>>> making;
    for (const std::string& worker : task.trainers) {
      making.push_back(rpc::Create<HybridTrainer>(
          agent, worker, task, made->servers_->directory(),
          static_cast<int64_t>(making.size())));
    }
    ASSIGN_OR_RETURN(made->trainers_, made->AwaitAll(making));
    return made;
  }

  // Takes one step at all trainers; returns the mean loss, the sum of the words
  // and the longest wait.
  absl::StatusOr<HybridStep> Step();
  absl::StatusOr<double> Perplexity();
  // Returns an error unless all trainers have the same bits.
  absl::Status CheckEqual();

 private:
  HybridTraining() = default;

  template <auto kMethod>
  auto OfEach() {
    using Call = decltype(trainers_[0].Async<kMethod>(rpc::CallOptions()));
    std::vector<Call> calls;
    for (const RRef<HybridTrainer>& trainer : trainers_) {
      calls.push_back(
          trainer.Async<kMethod>(rpc::CallOptions{.timeout = kNoLimit}));
    }
    return AwaitAll(calls);
  }
  // Ends when a server is lost: trainers would call it again and again, because
  // it might come back.
  template <typename R>
  absl::StatusOr<std::vector<R>> AwaitAll(const std::vector<Future<R>>& calls) {
    const Future<std::vector<R>> all = WaitAll(calls);
    while (!all.ready() && !lost_.ready()) (void)all.Await(kLook);
    if (lost_.ready()) return lost_.Await();
    return all.Await();
  }

  Future<void> lost_;
  std::unique_ptr<dist::ParameterServers> servers_;
  std::vector<RRef<HybridTrainer>> trainers_;
};

absl::StatusOr<HybridStep> HybridTraining::Step() {
  ASSIGN_OR_RETURN(const std::vector<HybridStep> all,
                   OfEach<&HybridTrainer::Step>());
  HybridStep mean;
  for (const HybridStep& step : all) {
    mean.loss += step.loss / static_cast<double>(all.size());
    mean.words += step.words;
    mean.waited_s = std::max(mean.waited_s, step.waited_s);
  }
  return mean;
}

absl::StatusOr<double> HybridTraining::Perplexity() {
  ASSIGN_OR_RETURN(const std::vector<double> all,
                   OfEach<&HybridTrainer::Perplexity>());
  double sum = 0;
  for (const double perplexity : all) sum += std::log(perplexity);
  return std::exp(sum / static_cast<double>(all.size()));
}

absl::Status HybridTraining::CheckEqual() {
  ASSIGN_OR_RETURN(const auto all, OfEach<&HybridTrainer::Parameters>());
  for (const std::vector<Tensor>& one : all) {
    for (size_t i = 0; i < one.size(); ++i) {
      if (!ops::BitEqual(one[i], all.front()[i]))
        return absl::InternalError("the trainers' parameters differ");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HybridTask> TaskFromFlags() {
  HybridTask task;
  task.model = WordModelFromFlags();
  ASSIGN_OR_RETURN(task.optimizer, RestOptimizer());
  const WordFiles files = WordFilesFromFlags();
  task.data = files.data;
  task.held_out = files.held_out;
  const Reading reading = ReadingFromFlags();
  task.columns = reading.columns;
  task.length = reading.length;
  return task;
}

// The results of a training, by step.
struct Record {
  std::vector<double> losses, seconds, perplexities;
  double waited_s = 0;
  int64_t words = 0;  // of the first step
};

// Takes and times one step at all trainers.
absl::StatusOr<HybridStep> TakeStep(HybridTraining& training, Record& record) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  ASSIGN_OR_RETURN(const HybridStep step, training.Step());
  record.seconds.push_back(
      std::chrono::duration<double>(Clock::now() - begin).count());
  record.losses.push_back(step.loss);
  record.waited_s += step.waited_s;
  if (record.words == 0) record.words = step.words;
  return step;
}

absl::StatusOr<HybridStep> TakeStepTraced(rpc::Agent& agent,
                                          HybridTraining& training,
                                          Record& record) {
  HybridStep step;
  RETURN_IF_ERROR(tools::WriteTraceOf(
      agent, absl::GetFlag(FLAGS_trace), [&]() -> absl::Status {
        ASSIGN_OR_RETURN(step, TakeStep(training, record));
        return absl::OkStatus();
      }));
  return step;
}

absl::Status TrainAll(rpc::Agent& agent, HybridTraining& training,
                      const Reading& reading, const WordTexts& texts,
                      const std::string& variant, Record& record) {
  const int64_t steps = StepsOf(reading, texts);
  const int64_t pieces =
      TextColumns(texts.training, reading.columns).pieces(reading.length);
  Progress progress(variant, "words", steps);
  ASSIGN_OR_RETURN(const optim::AnyOptions rest, RestOptimizer());
  TrainingLog log(variant, "words", rest.lr);
  // The first step is the slowest.
  const int64_t traced =
      absl::GetFlag(FLAGS_trace).empty() ? 0 : std::min<int64_t>(2, steps);
  for (int64_t i = 1; i <= steps; ++i) {
    ASSIGN_OR_RETURN(const HybridStep step,
                     i == traced ? TakeStepTraced(agent, training, record)
                                 : TakeStep(training, record));
    progress.Step(step.loss, step.words);
    log.Step(step.loss, step.words);
    if (i % pieces != 0 && i != steps) continue;
    ASSIGN_OR_RETURN(const double perplexity, training.Perplexity());
    record.perplexities.push_back(perplexity);
  }
  return training.CheckEqual();
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent, const std::string& variant,
                                  const WordTexts& texts) {
  ASSIGN_OR_RETURN(Crew crew, CrewOf(agent, absl::GetFlag(FLAGS_servers)));
  if (variant == "single") crew.trainers.resize(1);
  RETURN_IF_ERROR(tools::Print(
      absl::StrCat(absl::StrJoin(crew.servers, ", "), " serves\n")));
  ASSIGN_OR_RETURN(HybridTask task, TaskFromFlags());
  task.trainers = crew.trainers;
  ASSIGN_OR_RETURN(const auto training,
                   HybridTraining::Make(agent, crew, task, texts.vocabulary));
  Reading reading = ReadingFromFlags();
  reading.columns *= static_cast<int64_t>(crew.trainers.size());
  Record record;
  RETURN_IF_ERROR(TrainAll(agent, *training, reading, texts, variant, record));
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
    ASSIGN_OR_RETURN(Measurement measured, Train(agent, variant, texts));
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

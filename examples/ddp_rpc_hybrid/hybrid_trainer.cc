// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"

#include <chrono>
#include <utility>

#include "autograd/distributed/context.h"
#include "autograd/tensors_of.h"
#include "core/status.h"
#include "models/data/sampler.h"
#include "models/distributed/server/client.h"

namespace baton::examples {
namespace {

// All copies begin with the first trainer's weights; only their dropout
// differs.
WordModelOptions OptionsOf(const HybridTask& task, const WordTexts& texts,
                           int64_t rank) {
  WordModelOptions options = task.model;
  options.vocabulary = texts.vocabulary;
  options.seed += static_cast<uint64_t>(rank);
  return options;
}

}  // namespace

HybridTrainer::Rest::Rest(const WordModelOptions& options,
                          std::shared_ptr<nn::LSTM> recurrent)
    : dropout(MakeModule<nn::Dropout>(
          "dropout", options.dropout,
          options.SeedOf(WordModelOptions::Part::kEmbeddingDropout))),
      lstm(RegisterModule("lstm", std::move(recurrent))),
      decoder(MakeModule<WordDecoder>("decoder", options)) {}

absl::StatusOr<std::unique_ptr<HybridTrainer>> HybridTrainer::Make(
    rpc::CallContext& call, const HybridTask& task,
    const RRef<dist::ServerDirectory>& directory, int64_t rank) {
  ASSIGN_OR_RETURN(WordTexts texts,
                   ReadWords(task.data, task.held_out, task.model.vocabulary));
  std::unique_ptr<HybridTrainer> trainer(
      new HybridTrainer(call.agent(), task, rank, std::move(texts)));
  RETURN_IF_ERROR(trainer->Join(directory));
  return trainer;
}

HybridTrainer::HybridTrainer(rpc::Agent& agent, const HybridTask& task,
                             int64_t rank, WordTexts texts)
    : WordReader(OptionsOf(task, texts, rank)),
      agent_(agent),
      task_(task),
      rank_(rank),
      texts_(std::move(texts)),
      columns_(texts_.training, task.columns),
      rest_(OptionsOf(task, texts_, rank), lstm()),
      optimizer_(
          std::make_unique<optim::Any>(rest_.Parameters(), task.optimizer)) {}

// A sample is a piece of one column, and a step takes that of all columns. The
// servers wait for every trainer, so it joins them when the others wait for it.
absl::Status HybridTrainer::Join(const RRef<dist::ServerDirectory>& directory) {
  dist::ElasticOptions options;
  options.run = task_.run;
  options.samples = std::make_shared<data::SequentialSampler>(
      task_.columns * columns_.pieces(task_.length));
  options.batch = task_.columns;
  options.first_workers = task_.trainers;
  options.only_joins = task_.begun;
  options.max_members = static_cast<int>(task_.columns);
  options.timeout = std::chrono::milliseconds(task_.timeout_ms);
  auto training =
      dist::ElasticTraining::Make(agent_, rest_, *optimizer_, options);
  // A worker that was given up and is back has its former trainer until that
  // one's calls end; then another try may succeed.
  if (absl::IsAlreadyExists(training.status()))
    return absl::UnavailableError(training.status().message());
  ASSIGN_OR_RETURN(training_, std::move(training));
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(agent_, directory, rank_));
  ASSIGN_OR_RETURN(words_,
                   dist::Embedding::Make(std::move(client), kWords,
                                         {.step_awaits_trainers = true}));
  return absl::OkStatus();
}

void HybridTrainer::GoTo(const Share& share) {
  const Read next{.step = share.step,
                  .begin = share.samples.front() % task_.columns,
                  .end = share.samples.back() % task_.columns + 1,
                  .before = {}};
  const bool same = next.begin == last_.begin && next.end == last_.end;
  const bool first = share.samples.front() < task_.columns;
  if (first || !same) {
    Rewind();
  } else if (next.step == last_.step) {
    ImportState(last_.before);
  } else if (next.step != last_.step + 1) {
    Rewind();
  }
  last_ = next;
  last_.before = ExportState();
}

data::TokenBatch HybridTrainer::PieceOf(int64_t step) const {
  return columns_.Piece(step % columns_.pieces(task_.length), task_.length);
}

absl::StatusOr<Variable> HybridTrainer::TrainingLoss(dist::Context& ctx,
                                                     const Share& share) {
  GoTo(share);
  const auto own = [&](const Tensor& all) {
    return all.Slice(1, last_.begin, last_.end).Contiguous();
  };
  const data::TokenBatch piece = PieceOf(share.step);
  ASSIGN_OR_RETURN(const Variable rows,
                   words_->Forward(ctx, own(piece.ids)).Await(kNoLimit));
  return Loss(rows, own(piece.targets));
}

Variable HybridTrainer::Loss(const Variable& rows, const Tensor& targets) {
  return rest_.decoder.Loss(Recur(rest_.dropout(rows)), targets);
}

absl::StatusOr<double> HybridTrainer::LossOf(const data::TokenBatch& piece) {
  const NoGrad no_grad;
  ASSIGN_OR_RETURN(const Variable rows,
                   words_->Forward(piece.ids).Await(kNoLimit));
  return Loss(rows, piece.targets).tensor().Item();
}

absl::Status HybridTrainer::SetTraining(bool training) {
  rest_.Train(training);
  return absl::OkStatus();
}

absl::StatusOr<HybridStep> HybridTrainer::Step() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  // [step]
  ASSIGN_OR_RETURN(const dist::ElasticTraining::Done done,
                   training_->Step([&](dist::Context& ctx, const Share& share) {
                     return TrainingLoss(ctx, share);
                   }));
  // [end]
  return HybridStep{
      .step = done.step,
      .trainers = done.members,
      .loss = done.loss,
      .words = PieceOf(done.step).targets.numel(),
      .seconds = std::chrono::duration<double>(Clock::now() - begin).count(),
      .waited_s = done.waited_s};
}

// Afterwards an epoch begins anew.
absl::StatusOr<double> HybridTrainer::Perplexity(int64_t part, int64_t parts) {
  const int64_t share = texts_.held_out.numel() / parts;
  return PerplexityOf(
      *this, texts_.held_out.Slice(0, part * share, (part + 1) * share),
      {.columns = std::max<int64_t>(1, task_.columns / parts),
       .length = task_.length});
}

std::vector<Tensor> HybridTrainer::Parameters() const {
  return TensorsOf(rest_.Parameters());
}

void RegisterHybrid(rpc::Registry& registry) { registry.Add<HybridTrainer>(); }

}  // namespace baton::examples

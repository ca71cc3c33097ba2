// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_join.h"
#include "autograd/distributed/context.h"
#include "autograd/tensors_of.h"
#include "core/status.h"
#include "models/distributed/server/client.h"
#include "rpc/collectives/process_group.h"

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

int64_t Trainers(const HybridTask& task) {
  return static_cast<int64_t>(task.trainers.size());
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
    : WordTrainer(OptionsOf(task, texts, rank)),
      agent_(agent),
      task_(task),
      rank_(rank),
      texts_(std::move(texts)),
      columns_(texts_.training, task.columns * Trainers(task)),
      rest_(OptionsOf(task, texts_, rank), lstm()) {}

absl::Status HybridTrainer::Join(const RRef<dist::ServerDirectory>& directory) {
  rpc::GroupOptions options;
  options.name = absl::StrJoin(task_.trainers, "+");
  options.members = task_.trainers;
  options.timeout = std::chrono::milliseconds(task_.timeout_ms);
  ASSIGN_OR_RETURN(
      auto group,
      rpc::ProcessGroup::Make(agent_, options).Await(options.timeout));
  ASSIGN_OR_RETURN(parallel_,
                   dist::DataParallel::Make(rest_, std::move(group)));
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(agent_, directory, rank_));
  ASSIGN_OR_RETURN(words_, dist::Embedding::Make(std::move(client), kWords));
  optimizer_ =
      std::make_unique<optim::Any>(rest_.Parameters(), task_.optimizer);
  return absl::OkStatus();
}

Variable HybridTrainer::Loss(const Variable& rows, const Tensor& targets) {
  return rest_.decoder.Loss(Recur(rest_.dropout(rows)), targets);
}

absl::StatusOr<double> HybridTrainer::TrainStep(const data::TokenBatch& piece) {
  dist::Context ctx(agent_);
  ASSIGN_OR_RETURN(const Variable rows,
                   words_->Forward(ctx, piece.ids).Await(kNoLimit));
  const Variable loss = Loss(rows, piece.targets);
  optimizer_->ZeroGrad();
  RETURN_IF_ERROR(parallel_->Backward(ctx, loss));
  // The servers step their rows while the rest is stepped here.
  const Future<void> pushed = ctx.StepOthers();
  optimizer_->Step();
  RETURN_IF_ERROR(pushed.Await(kNoLimit));
  return loss.tensor().Item();
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

data::TokenBatch HybridTrainer::OwnColumns(
    const data::TokenBatch& piece) const {
  const int64_t begin = rank_ * task_.columns;
  const auto own = [&](const Tensor& all) {
    return all.Slice(1, begin, begin + task_.columns).Contiguous();
  };
  return {.ids = own(piece.ids), .targets = own(piece.targets)};
}

absl::StatusOr<HybridStep> HybridTrainer::Step() {
  const int64_t number = step_ % columns_.pieces(task_.length);
  if (number == 0) Rewind();
  const data::TokenBatch piece =
      OwnColumns(columns_.Piece(number, task_.length));
  const double waited = parallel_->figures().waited_s;
  const absl::StatusOr<double> loss =
      CatchErrors([&] { return TrainStep(piece); });
  if (!loss.ok()) {
    // The others may be waiting for this one's gradients.
    rpc::ProcessGroup& group = parallel_->group();
    if (group.status().ok()) group.Abort(loss.status());
    return loss.status();
  }
  ++step_;
  return HybridStep{.loss = *loss,
                    .words = piece.targets.numel(),
                    .waited_s = parallel_->figures().waited_s - waited};
}

// Afterwards an epoch begins anew.
absl::StatusOr<double> HybridTrainer::Perplexity() {
  const int64_t share = texts_.held_out.numel() / Trainers(task_);
  return PerplexityOf(
      *this, texts_.held_out.Slice(0, rank_ * share, (rank_ + 1) * share),
      {.columns = task_.columns, .length = task_.length});
}

std::vector<Tensor> HybridTrainer::Parameters() const {
  return TensorsOf(rest_.Parameters());
}

void RegisterHybrid(rpc::Registry& registry) { registry.Add<HybridTrainer>(); }

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_trainer.h"

#include <utility>
#include <vector>

#include "autograd/distributed/context.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "core/status.h"
#include "examples/support/participants.h"
#include "models/distributed/module.h"
#include "optim/distributed/optimizer.h"

namespace baton::examples {
namespace {

using RemoteEmbedding = dist::Module<WordEmbedding>;
using RemoteDecoder = dist::Module<WordDecoder>;

class LocalWordTrainer final : public WordTrainer {
 public:
  explicit LocalWordTrainer(const WordTraining& training)
      : WordTrainer(training.model),
        embedding_(training.model),
        decoder_(training.model),
        optimizer_(ParametersOfAll(), training.optimizer) {
    optimizer_.set_clip({.norm = training.clip_norm});
    if (training.rates) optimizer_.set_schedule(training.rates);
  }

  absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) override {
    const Variable loss = Loss(piece);
    optimizer_.ZeroGrad();
    loss.Backward();
    optimizer_.Step();
    return loss.tensor().Item();
  }
  absl::StatusOr<double> LossOf(const data::TokenBatch& piece) override {
    const NoGrad no_grad;
    return Loss(piece).tensor().Item();
  }
  absl::Status SetTraining(bool training) override {
    embedding_.Train(training);
    lstm()->Train(training);
    decoder_.Train(training);
    return absl::OkStatus();
  }

 private:
  Variable Loss(const data::TokenBatch& piece) {
    return decoder_.Loss(Recur(embedding_(piece.ids)), piece.targets);
  }
  std::vector<Variable> ParametersOfAll() const {
    std::vector<Variable> all;
    for (const nn::Module* part : {static_cast<const nn::Module*>(&embedding_),
                                   static_cast<const nn::Module*>(lstm().get()),
                                   static_cast<const nn::Module*>(&decoder_)}) {
      for (const Variable& parameter : part->Parameters())
        all.push_back(parameter);
    }
    return all;
  }

  WordEmbedding embedding_;
  WordDecoder decoder_;
  optim::Any optimizer_;
};

class RemoteWordTrainer final : public WordTrainer {
 public:
  RemoteWordTrainer(rpc::Agent& agent, const WordTraining& training,
                    RemoteEmbedding embedding, RemoteDecoder decoder)
      : WordTrainer(training.model),
        agent_(agent),
        embedding_(std::move(embedding)),
        lstm_(RRef<nn::LSTM>::Make(agent, lstm())),
        decoder_(std::move(decoder)),
        optimizer_(agent, training.optimizer,
                   {dist::ParameterSource(embedding_).Named(kEmbedding),
                    dist::ParameterSource(lstm_).Named(kLstm),
                    dist::ParameterSource(decoder_).Named(kDecoder)}) {
    optimizer_.set_clip({.norm = training.clip_norm});
    if (training.rates) optimizer_.set_schedule(training.rates);
  }

  // [step]
  absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) override {
    dist::Context ctx(agent_);
    ASSIGN_OR_RETURN(const Variable loss, Loss(ctx, piece));
    RETURN_IF_ERROR(ctx.Backward(loss));    // decoder, LSTM, embedding
    RETURN_IF_ERROR(optimizer_.Step(ctx));  // each part where it is
    return loss.tensor().Item();
  }
  // [end]
  absl::StatusOr<double> LossOf(const data::TokenBatch& piece) override {
    // What is recorded at the server is dropped with the context.
    dist::Context ctx(agent_);
    ASSIGN_OR_RETURN(const Variable loss, Loss(ctx, piece));
    return loss.tensor().Item();
  }
  absl::Status SetTraining(bool training) override {
    lstm()->Train(training);
    const std::vector<Future<void>> both = {embedding_.Train(training),
                                            decoder_.Train(training)};
    return WaitAll(both).Await(kNoLimit);
  }
  absl::StatusOr<std::unique_ptr<dist::Checkpointer>> MakeCheckpointer(
      const CheckpointOptions& options) override {
    return dist::Checkpointer::Make(
        agent_, options,
        {dist::SavedModule(embedding_).Named(kEmbedding),
         dist::SavedModule(lstm_).Named(kLstm),
         dist::SavedModule(decoder_).Named(kDecoder)},
        {optimizer_});
  }

 private:
  static constexpr char kEmbedding[] = "embedding", kLstm[] = "lstm",
                        kDecoder[] = "decoder";

  // [loss]
  absl::StatusOr<Variable> Loss(const dist::Context& ctx,
                                const data::TokenBatch& piece) {
    ASSIGN_OR_RETURN(const Variable x,
                     embedding_.ref()
                         .Async<&WordEmbedding::Forward>(ctx, piece.ids)
                         .Await(kNoLimit));
    return decoder_.ref()
        .Async<&WordDecoder::Loss>(ctx, Recur(x), piece.targets)
        .Await(kNoLimit);
  }
  // [end]

  rpc::Agent& agent_;
  const RemoteEmbedding embedding_;
  const RRef<nn::LSTM> lstm_;
  const RemoteDecoder decoder_;
  dist::Optimizer<optim::Any> optimizer_;
};

}  // namespace

WordReader::WordReader(const WordModelOptions& options)
    : generator_(options.SeedOf(WordModelOptions::Part::kLstm)),
      lstm_(std::make_shared<nn::LSTM>(
          options.width, options.width, generator_,
          nn::RnnOptions{.layers = options.layers})) {}

Variable WordReader::Recur(const Variable& x) {
  const nn::RecurrentModule::Output out = lstm_->Run(x, state_);
  state_ = {.h = out.last.h.Detach(), .c = out.last.c.Detach()};
  return out.y;
}

NamedTensors WordReader::ExportState() const {
  NamedTensors state;
  if (state_.h.defined())
    state = {{"h", state_.h.tensor()}, {"c", state_.c.tensor()}};
  return state;
}

void WordReader::ImportState(const NamedTensors& state) {
  Rewind();
  const auto h = state.find("h"), c = state.find("c");
  if (h == state.end() || c == state.end()) return;
  state_ = {.h = Variable(h->second), .c = Variable(c->second)};
}

absl::StatusOr<std::unique_ptr<dist::Checkpointer>>
WordTrainer::MakeCheckpointer(const CheckpointOptions&) {
  return absl::UnimplementedError("what one process trains is not saved");
}

std::unique_ptr<WordTrainer> MakeLocalWordTrainer(
    const WordTraining& training) {
  return std::make_unique<LocalWordTrainer>(training);
}

absl::StatusOr<std::unique_ptr<WordTrainer>> MakeRemoteWordTrainer(
    rpc::Agent& agent, const std::string& server,
    const WordTraining& training) {
  const auto embedding = RemoteEmbedding::Create(agent, server, training.model);
  const auto decoder = RemoteDecoder::Create(agent, server, training.model);
  ASSIGN_OR_RETURN(RemoteEmbedding made_embedding, embedding.Await(kNoLimit));
  ASSIGN_OR_RETURN(RemoteDecoder made_decoder, decoder.Await(kNoLimit));
  return std::make_unique<RemoteWordTrainer>(
      agent, training, std::move(made_embedding), std::move(made_decoder));
}

std::optional<rpc::WorkerInfo> RemoteWordTrainers::Find() const {
  for (const rpc::WorkerInfo& worker : agent_.workers()) {
    if (worker.name != agent_.self().name &&
        !used_.contains(worker.incarnation))
      return worker;
  }
  return std::nullopt;
}

std::optional<rpc::WorkerInfo> RemoteWordTrainers::AwaitWorker(
    Clock::time_point deadline) const {
  for (;;) {
    const Promise<void> joined;
    agent_.WatchMembers([joined](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kJoined)
        joined.Set(absl::OkStatus());
    });
    if (auto worker = Find(); worker.has_value()) return worker;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    if (!joined.future().Await(left).ok()) return std::nullopt;
  }
}

absl::StatusOr<std::unique_ptr<WordTrainer>> RemoteWordTrainers::MakeNext() {
  const auto deadline = Clock::now() + agent_.default_timeout();
  for (;;) {
    const auto worker = AwaitWorker(deadline);
    if (!worker.has_value()) {
      return absl::UnavailableError(
          "no worker is there for embedding and decoder: give baton-run "
          "--workers=1, or more, that one may take the place of another");
    }
    used_.insert(worker->incarnation);
    auto made = MakeRemoteWordTrainer(agent_, worker->name, training_);
    if (made.ok() || !IsLoss(made.status())) return made;
  }
}

void RegisterWordModel(rpc::Registry& registry) {
  dist::RegisterModule<WordEmbedding>(registry);
  dist::RegisterModule<WordDecoder>(registry);
  dist::RegisterParameters<nn::LSTM>(registry);
  registry.AddFunction<&dist::module_calls::Hold<nn::LSTM>>();
}

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/rnn/word_experiment.h"
#include "examples/rnn/word_model.h"
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
#include "models/distributed/data_parallel/elastic.h"
#include "models/distributed/server/embedding.h"
#include "models/distributed/server/parameter_server.h"
#include "models/nn/dropout.h"
#include "models/nn/module.h"
#include "optim/any.h"
#include "rpc/call_context.h"
#include "rpc/registry.h"

namespace baton::examples {

// The name of the servers' table of word embeddings.
inline constexpr char kWords[] = "words";

// What the trainers of one model do together. Plain data.
struct HybridTask {
  std::string run = "hybrid";             // differs from those of other models
  WordModelOptions model;                 // the texts' vocabulary is no larger
  optim::AnyOptions optimizer;            // for the dense parameters
  std::string data, held_out;             // files for ReadWords
  int64_t columns = 40;                   // of all trainers together
  int64_t length = 35;                    // words of each column in a step
  std::vector<rpc::WorkerInfo> trainers;  // workers that begin; others may join
  bool begun = false;           // has taken steps: for those that join
  int64_t timeout_ms = 60'000;  // for calls among the trainers

  static constexpr auto Fields() {
    using T = HybridTask;
    return std::tuple{&T::run,      &T::model,     &T::optimizer, &T::data,
                      &T::held_out, &T::columns,   &T::length,    &T::trainers,
                      &T::begun,    &T::timeout_ms};
  }
};

// A step of all trainers, as one of them tells it. Plain data.
struct HybridStep {
  int64_t step = 0;  // from 0
  int32_t trainers = 0;
  double loss = 0;      // before the step, on the words of all trainers
  int64_t words = 0;    // that all have learnt from
  double seconds = 0;   // of the teller
  double waited_s = 0;  // for the others' gradients, after backward
  static constexpr auto Fields() {
    using S = HybridStep;
    return std::tuple{&S::step,  &S::trainers, &S::loss,
                      &S::words, &S::seconds,  &S::waited_s};
  }
};

// One trainer of a language model over words. The embeddings of words are rows
// at parameter servers; each trainer has a copy of the rest, the LSTM and the
// decoder. A step is one context: its backward sends the rows' gradients to the
// servers and averages the other gradients over the trainers, which may join
// and be lost meanwhile (dist::ElasticTraining). Columns whose trainer has
// changed go on from the initial state of the LSTM. Lives at the worker that
// trains. Calls come one at a time.
class HybridTrainer final : public WordReader {
 public:
  // Waits for the other workers of task.trainers or, if the training has begun,
  // for the end of a step. `rank` differs from that of other trainers.
  static absl::StatusOr<std::unique_ptr<HybridTrainer>> Make(
      rpc::CallContext& call, const HybridTask& task,
      const RRef<dist::ServerDirectory>& directory, int64_t rank);

  // Learns from a share of the next piece of the text, with all other trainers,
  // which must call this, too.
  absl::StatusOr<HybridStep> Step();
  // Returns the perplexity on one of `parts` equal parts of the held-out words.
  absl::StatusOr<double> Perplexity(int64_t part, int64_t parts);
  // Returns the parameters of its copy.
  std::vector<Tensor> Parameters() const;
  using Exports =
      rpc::Methods<&HybridTrainer::Make, &HybridTrainer::Step,
                   &HybridTrainer::Perplexity, &HybridTrainer::Parameters>;

  absl::StatusOr<double> LossOf(const data::TokenBatch& piece) override;
  absl::Status SetTraining(bool training) override;

 private:
  using Share = dist::ElasticTraining::Share;
  // The part of the model that every trainer has a copy of.
  class Rest final : public nn::Module {
   public:
    Rest(const WordModelOptions& options, std::shared_ptr<nn::LSTM> recurrent);
    nn::Dropout& dropout;
    nn::LSTM& lstm;
    WordDecoder& decoder;
  };
  // Columns of one piece of the text, and the LSTM's state before it.
  struct Read {
    int64_t step = -1;
    int64_t begin = 0, end = 0;  // columns
    NamedTensors before;
  };

  HybridTrainer(rpc::Agent& agent, const HybridTask& task, int64_t rank,
                WordTexts texts);
  absl::Status Join(const RRef<dist::ServerDirectory>& directory);
  // Goes to the state before the share, which may have been read before.
  void GoTo(const Share& share);
  absl::StatusOr<Variable> TrainingLoss(dist::Context& ctx, const Share& share);
  Variable Loss(const Variable& rows, const Tensor& targets);
  data::TokenBatch PieceOf(int64_t step) const;

  rpc::Agent& agent_;
  const HybridTask task_;
  const int64_t rank_;
  const WordTexts texts_;
  const TextColumns columns_;
  Rest rest_;
  std::unique_ptr<optim::Any> optimizer_;
  std::unique_ptr<dist::ElasticTraining> training_;
  std::unique_ptr<dist::Embedding> words_;
  Read last_;
};

// Registers what dist::RegisterStock does not.
void RegisterHybrid(rpc::Registry& registry);

}  // namespace baton::examples

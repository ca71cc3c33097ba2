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
#include "models/distributed/data_parallel/data_parallel.h"
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
  WordModelOptions model;             // the texts' vocabulary is no larger
  optim::AnyOptions optimizer;        // for the dense parameters
  std::string data, held_out;         // files for ReadWords
  int64_t columns = 20;               // of each trainer
  int64_t length = 35;                // words of each column in a step
  std::vector<std::string> trainers;  // workers
  int64_t timeout_ms = 60'000;        // for calls among the trainers

  static constexpr auto Fields() {
    using T = HybridTask;
    return std::tuple{&T::model,   &T::optimizer, &T::data,     &T::held_out,
                      &T::columns, &T::length,    &T::trainers, &T::timeout_ms};
  }
};

// One step of a trainer. Plain data.
struct HybridStep {
  double loss = 0;      // before the step, on its own words
  int64_t words = 0;    // words that it has learnt from
  double waited_s = 0;  // for the others' gradients, after backward
  static constexpr auto Fields() {
    return std::tuple{&HybridStep::loss, &HybridStep::words,
                      &HybridStep::waited_s};
  }
};

// One trainer of a language model over words. The embeddings of words are rows
// at parameter servers; each trainer has a copy of the rest, the LSTM and the
// decoder. A step is one context: its backward sends the rows' gradients to the
// servers and averages the other gradients over the trainers. Lives at the
// worker that trains. Calls come one at a time, and every call is made at all
// trainers.
class HybridTrainer final : public WordTrainer {
 public:
  // Makes the `rank`-th of task.trainers; waits for the others.
  static absl::StatusOr<std::unique_ptr<HybridTrainer>> Make(
      rpc::CallContext& call, const HybridTask& task,
      const RRef<dist::ServerDirectory>& directory, int64_t rank);

  // Learns from this trainer's columns of the next piece of the text.
  absl::StatusOr<HybridStep> Step();
  // Returns the perplexity on its share of the held-out words.
  absl::StatusOr<double> Perplexity();
  // Returns the parameters of its copy.
  std::vector<Tensor> Parameters() const;
  using Exports =
      rpc::Methods<&HybridTrainer::Make, &HybridTrainer::Step,
                   &HybridTrainer::Perplexity, &HybridTrainer::Parameters>;

  absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) override;
  absl::StatusOr<double> LossOf(const data::TokenBatch& piece) override;
  absl::Status SetTraining(bool training) override;

 private:
  // The part of the model that every trainer has a copy of.
  class Rest final : public nn::Module {
   public:
    Rest(const WordModelOptions& options, std::shared_ptr<nn::LSTM> recurrent);
    nn::Dropout& dropout;
    nn::LSTM& lstm;
    WordDecoder& decoder;
  };

  HybridTrainer(rpc::Agent& agent, const HybridTask& task, int64_t rank,
                WordTexts texts);
  absl::Status Join(const RRef<dist::ServerDirectory>& directory);
  Variable Loss(const Variable& rows, const Tensor& targets);
  // Returns this trainer's columns of a piece of all columns.
  data::TokenBatch OwnColumns(const data::TokenBatch& piece) const;

  rpc::Agent& agent_;
  const HybridTask task_;
  const int64_t rank_;
  const WordTexts texts_;
  const TextColumns columns_;  // of all trainers together
  Rest rest_;
  std::unique_ptr<dist::DataParallel> parallel_;
  std::unique_ptr<dist::Embedding> words_;
  std::unique_ptr<optim::Any> optimizer_;
  int64_t step_ = 0;  // number of the next step
};

// Registers what dist::RegisterStock does not.
void RegisterHybrid(rpc::Registry& registry);

}  // namespace baton::examples

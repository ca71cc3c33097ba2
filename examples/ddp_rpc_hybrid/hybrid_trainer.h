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

// The servers' table of what stands for each word.
inline constexpr char kWords[] = "words";

// What the trainers of one model do. Plain data.
struct HybridTask {
  WordModelOptions model;             // the texts' vocabulary is no larger
  optim::AnyOptions optimizer;        // of what is dense
  std::string data, held_out;         // files, as ReadWords has them
  int64_t columns = 20;               // of each trainer
  int64_t length = 35;                // words of each that a step learns from
  std::vector<std::string> trainers;  // workers
  int64_t timeout_ms = 60'000;        // of what they do together

  static constexpr auto Fields() {
    using T = HybridTask;
    return std::tuple{&T::model,   &T::optimizer, &T::data,     &T::held_out,
                      &T::columns, &T::length,    &T::trainers, &T::timeout_ms};
  }
};

// One step of a trainer. Plain data.
struct HybridStep {
  double loss = 0;      // before it, of its own words
  int64_t words = 0;    // that it has learnt from
  double waited_s = 0;  // for gradients of others, after backward
  static constexpr auto Fields() {
    return std::tuple{&HybridStep::loss, &HybridStep::words,
                      &HybridStep::waited_s};
  }
};

// One of the trainers of a language model over words: what stands for a word is
// a row at parameter servers, and each trainer has a copy of the rest, LSTM and
// decoder. A step is one context, whose backward gives the rows' gradients to
// the servers and those of the rest to the trainers' mean. Lives at the worker
// that trains; calls come one at a time, and at all trainers.
class HybridTrainer final : public WordTrainer {
 public:
  // The `rank`-th of task.trainers; waits for the others.
  static absl::StatusOr<std::unique_ptr<HybridTrainer>> Make(
      rpc::CallContext& call, const HybridTask& task,
      const RRef<dist::ServerDirectory>& directory, int64_t rank);

  // Learns from this trainer's columns of the next piece of the text.
  absl::StatusOr<HybridStep> Step();
  // On its share of the words held out.
  absl::StatusOr<double> Perplexity();
  // Of what it has a copy of.
  std::vector<Tensor> Parameters() const;
  using Exports =
      rpc::Methods<&HybridTrainer::Make, &HybridTrainer::Step,
                   &HybridTrainer::Perplexity, &HybridTrainer::Parameters>;

  absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) override;
  absl::StatusOr<double> LossOf(const data::TokenBatch& piece) override;
  absl::Status SetTraining(bool training) override;

 private:
  // What every trainer has a copy of.
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
  // Of a piece of all trainers' columns.
  data::TokenBatch OwnColumns(const data::TokenBatch& piece) const;

  rpc::Agent& agent_;
  const HybridTask task_;
  const int64_t rank_;
  const WordTexts texts_;
  const TextColumns columns_;  // of all trainers
  Rest rest_;
  std::unique_ptr<dist::DataParallel> parallel_;
  std::unique_ptr<dist::Embedding> words_;
  std::unique_ptr<optim::Any> optimizer_;
  int64_t step_ = 0;  // that comes next
};

// Adds what the stock (dist::RegisterStock) has not.
void RegisterHybrid(rpc::Registry& registry);

}  // namespace baton::examples

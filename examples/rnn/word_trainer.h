// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
#include "examples/rnn/word_model.h"
#include "models/data/text.h"
#include "models/distributed/checkpoint.h"
#include "models/nn/rnn.h"
#include "optim/any.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::examples {

struct WordTraining {
  WordModelOptions model;
  optim::AnyOptions optimizer = {.kind = "adam", .lr = 0.002};
  optim::Schedule rates = nullptr;        // null: it stays as it is
  double clip_norm = optim::Clip::kNone;  // of all gradients together
};

// A language model over words, whose LSTM is here, in training: reads columns
// piece by piece, each from the state that the one before has left, through
// which no gradient flows (truncated back-propagation through time). Confined
// to one thread.
class WordTrainer {
 public:
  virtual ~WordTrainer() = default;

  // The next piece is the first one.
  void Rewind() { state_ = {}; }
  // What is left by the piece before.
  NamedTensors ExportState() const;
  void ImportState(const NamedTensors& state);
  // Learns from a piece; the loss before that.
  virtual absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) = 0;
  // Reads one only.
  virtual absl::StatusOr<double> LossOf(const data::TokenBatch& piece) = 0;
  virtual absl::Status SetTraining(bool training) = 0;
  // Of weights, the optimizer and the random numbers of dropout. Outlived by
  // this. Unimplemented where all is in this process.
  virtual absl::StatusOr<std::unique_ptr<dist::Checkpointer>> MakeCheckpointer(
      const CheckpointOptions& options);

 protected:
  explicit WordTrainer(const WordModelOptions& options);
  const std::shared_ptr<nn::LSTM>& lstm() const { return lstm_; }
  Variable Recur(const Variable& x);  // [T, N, width], as its result

 private:
  Generator generator_;
  const std::shared_ptr<nn::LSTM> lstm_;
  nn::RnnState state_;
};

// All of the model in this process.
std::unique_ptr<WordTrainer> MakeLocalWordTrainer(const WordTraining& training);

// Embedding and decoder at `server`. Only what stands for the words of a piece,
// one way and back, and its loss travel. Must not outlive the agent.
absl::StatusOr<std::unique_ptr<WordTrainer>> MakeRemoteWordTrainer(
    rpc::Agent& agent, const std::string& server, const WordTraining& training);

// Makes such trainers, each at a worker that none was made at before: the next
// one is for when that is lost. Must not outlive the agent. Confined to one
// thread.
class RemoteWordTrainers {
 public:
  RemoteWordTrainers(rpc::Agent& agent, WordTraining training)
      : agent_(agent), training_(std::move(training)) {}

  // Waits for such a worker to join as long as the agent's calls may take;
  // Unavailable where none does.
  absl::StatusOr<std::unique_ptr<WordTrainer>> MakeNext();

 private:
  using Clock = std::chrono::steady_clock;
  // The first that was not used.
  std::optional<rpc::WorkerInfo> Find() const;
  std::optional<rpc::WorkerInfo> AwaitWorker(Clock::time_point deadline) const;

  rpc::Agent& agent_;
  const WordTraining training_;
  std::set<uint64_t> used_;  // incarnations
};

// Adds what the stock (dist::RegisterStock) has not.
void RegisterWordModel(rpc::Registry& registry);

}  // namespace baton::examples

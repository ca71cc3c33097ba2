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
  optim::Schedule rates = nullptr;        // null: the rate is constant
  double clip_norm = optim::Clip::kNone;  // of all gradients together
};

// A language model over words, whose LSTM is in this process. It reads columns
// piece by piece, each from the state after the one before; no gradient flows
// through that state (truncated back-propagation through time). Confined to one
// thread.
class WordReader {
 public:
  virtual ~WordReader() = default;

  // Starts from the initial state: the next piece is the first one.
  void Rewind() { state_ = {}; }
  // Returns the state after the last piece.
  NamedTensors ExportState() const;
  void ImportState(const NamedTensors& state);
  // Returns the loss of a piece without learning.
  virtual absl::StatusOr<double> LossOf(const data::TokenBatch& piece) = 0;
  virtual absl::Status SetTraining(bool training) = 0;

 protected:
  explicit WordReader(const WordModelOptions& options);
  const std::shared_ptr<nn::LSTM>& lstm() const { return lstm_; }
  Variable Recur(const Variable& x);  // [T, N, width] -> [T, N, width]

 private:
  Generator generator_;
  const std::shared_ptr<nn::LSTM> lstm_;
  nn::RnnState state_;
};

// One that learns. Confined to one thread.
class WordTrainer : public WordReader {
 public:
  // Learns from a piece; returns the loss before the update.
  virtual absl::StatusOr<double> TrainStep(const data::TokenBatch& piece) = 0;
  // Returns a checkpointer of weights, optimizer and the random numbers of
  // dropout, which must not outlive this object. Unimplemented if the whole
  // model is in this process.
  virtual absl::StatusOr<std::unique_ptr<dist::Checkpointer>> MakeCheckpointer(
      const CheckpointOptions& options);

 protected:
  using WordReader::WordReader;
};

// Makes a trainer with the whole model in this process.
std::unique_ptr<WordTrainer> MakeLocalWordTrainer(const WordTraining& training);

// Makes a trainer whose embedding and decoder are at `server`. Only the
// embeddings of a piece's words, their gradients and the loss travel. Must not
// outlive the agent.
absl::StatusOr<std::unique_ptr<WordTrainer>> MakeRemoteWordTrainer(
    rpc::Agent& agent, const std::string& server, const WordTraining& training);

// Makes such trainers, each at a worker that had none before; make the next one
// when a worker is lost. Must not outlive the agent. Confined to one thread.
class RemoteWordTrainers {
 public:
  RemoteWordTrainers(rpc::Agent& agent, WordTraining training)
      : agent_(agent), training_(std::move(training)) {}

  // Waits for an unused worker to join, for the agent's default timeout; then
  // returns Unavailable.
  absl::StatusOr<std::unique_ptr<WordTrainer>> MakeNext();

 private:
  using Clock = std::chrono::steady_clock;
  // Returns the first unused worker.
  std::optional<rpc::WorkerInfo> Find() const;
  std::optional<rpc::WorkerInfo> AwaitWorker(Clock::time_point deadline) const;

  rpc::Agent& agent_;
  const WordTraining training_;
  std::set<uint64_t> used_;  // incarnations
};

// Registers what dist::RegisterStock does not.
void RegisterWordModel(rpc::Registry& registry);

}  // namespace baton::examples

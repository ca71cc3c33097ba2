// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/distributed/recovery.h"
#include "optim/sgd.h"
#include "rpc/agent.h"
#include "rpc/registry.h"
#include "tests/sim/rng.h"
#include "tests/sim/training_log.h"
#include "tests/support/toy_stages.h"

namespace baton::sim {

// A worker that trains a recoverable pipeline, whose stages are at other
// workers. If it cannot continue, it begins anew; but after another trainer has
// taken over, only once that one is gone. Confined to its worker's thread.
class PipelineTrainer {
 public:
  // How long workers keep the states of a trainer with a journal.
  static constexpr std::chrono::seconds kGrace{60};

  struct Options {
    int group = 0;
    std::string journal{};  // may be empty
    std::string other{};    // the other worker that may train
    bool standby = false;   // trains only once the other one is lost
    Nanos pace{0};          // between steps, on average
  };
  PipelineTrainer(rpc::Agent& agent, Rng& random, const Training& training,
                  TrainingLog& log, Options options);

  static void Register(rpc::Registry& registry);
  // Makes the pipeline, takes its next step, or checks the state of a stage.
  void Step();
  // Drops the pipeline, the optimizer and the modules.
  void Drop();

 private:
  using Stage = dist::Module<testing::NoisyStage>;

  bool Waits() const;
  void Begin();
  absl::Status Make();
  absl::Status MakeStages();
  void Train();
  void LookAt(int stage);
  void GiveUp(const absl::Status& why);

  rpc::Agent& agent_;
  Rng& random_;
  const Training& training_;
  TrainingLog& log_;
  const Options options_;
  bool waits_;               // while the other trainer is there
  uint64_t refused_by_ = 0;  // the incarnation to wait for; 0: any
  Nanos next_{0};            // when the next step may begin
  std::vector<Stage> stages_;
  std::vector<dist::RecoveredModule> recovered_;
  std::unique_ptr<dist::Optimizer<optim::Sgd>> sgd_;
  std::unique_ptr<dist::RecoverablePipeline> pipeline_;
};

}  // namespace baton::sim

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/stage.h"
#include "models/nn/scopes.h"
#include "rpc/tracer.h"

namespace baton::dist {

// What the stages of one worker have in common in one step.
struct StepWork {
  const StepPlan& plan;
  const StepOrder& order;
  StepState::Deadline deadline;
  std::shared_ptr<rpc::Tracer> tracer;
  GradientSums gradients = {};  // of all parameters
};

// One step of one stage. Confined to its group's compute thread.
class StageRun {
 public:
  // Both outlive it.
  StageRun(const Stage& stage, StepWork& work, std::shared_ptr<StepState> mail);

  // Waits for what the instruction needs.
  absl::Status Run(const Instruction& step);
  // Seconds that instructions have waited so far.
  double waited_s() const;
  // Of the last stage: once all forwards are done.
  StageReport Report() const;
  // Where the plan steps parameters and the step broke before: running
  // statistics and generators are as it found them.
  void Undo() const;

 private:
  // What a micro-batch leaves behind for its backward.
  struct Saved {
    Variable input;
    Variable result;  // output or, in the last stage, weighted loss; undefined
                      // where checkpointing drops it
    nn::GeneratorStates drawn_from;  // of the forward; only for checkpointing
  };

  bool is_last() const { return stage_.is_last(); }
  bool recomputes() const { return stage_.spec().checkpoint; }
  RowRange RowsOf(int micro_batch) const;
  absl::Status Forward(int micro_batch);
  // `leave_weights`: to a W.
  absl::Status Backward(int micro_batch, bool leave_weights);
  void Weights(int micro_batch);
  void AddUp(LeafGradients gradients);
  void SendOn(int micro_batch, const Tensor& output);
  Variable WeightedLoss(const Variable& output, const RowRange& rows) const;
  absl::StatusOr<Tensor> InputOf(int micro_batch);
  // The result of a micro-batch again, with its graph.
  Variable Recompute(int micro_batch, const Saved& saved);

  const Stage& stage_;
  nn::Module& module_;
  StepWork& work_;
  const StepPlan& plan_;
  const std::shared_ptr<StepState> mail_;
  const std::string track_;  // of the trace
  // As the step found them, where it may be undone.
  nn::GeneratorStates drawn_from_;
  std::vector<std::pair<Tensor, Tensor>> buffers_;  // and copies
  std::optional<nn::EvalScope> evaluating_;  // the module, without training
  std::map<int, Saved> saved_;
  std::map<int, LateGradients> late_;  // for W
  // Of the last stage, by micro-batch.
  std::vector<Tensor> losses_, predicted_, outputs_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/stage.h"
#include "models/nn/scopes.h"
#include "rpc/tracer.h"

namespace baton::dist {

// One step of one stage. Confined to its group's compute thread.
class StageRun {
 public:
  // Both outlive it. `context` is null without training.
  StageRun(const Stage& stage, const StepPlan& plan,
           StepState::Deadline deadline, std::shared_ptr<ContextState> context,
           std::shared_ptr<StepState> state,
           std::shared_ptr<rpc::Tracer> tracer);

  // Waits for what the instruction needs.
  absl::Status Run(const Instruction& step);
  // Seconds that instructions have waited so far.
  double waited_s() const;
  // Of the last stage: once all forwards are done.
  StageReport& report() { return report_; }

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
  void SendOn(int micro_batch, const Tensor& output);
  Variable WeightedLoss(const Variable& output, const Tensor& targets,
                        const RowRange& rows) const;
  void Score(const Tensor& output, const Tensor& targets,
             const Variable& weighted);
  // The result of a micro-batch again, with its graph.
  Variable Recompute(int micro_batch, const Saved& saved,
                     const Tensor& targets);

  const Stage& stage_;
  nn::Module& module_;
  const StepPlan& plan_;
  const StepState::Deadline deadline_;
  const std::shared_ptr<ContextState> context_;
  const std::shared_ptr<StepState> state_;
  const std::shared_ptr<rpc::Tracer> tracer_;
  const std::string track_;                  // of the trace
  std::optional<nn::EvalScope> evaluating_;  // the module, without training
  std::map<int, Saved> saved_;
  std::map<int, LateGradients> late_;  // for W
  StageReport report_;
};

}  // namespace baton::dist

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
#include "models/distributed/stage.h"
#include "models/nn/scopes.h"
#include "rpc/tracer.h"

namespace baton::dist {

// One program of one stage. Confined to the stage's compute thread.
class StageRun {
 public:
  // All outlive it. `context` is null without training.
  StageRun(nn::Module& module, const StageSpec& spec,
           const std::optional<RRef<Stage>>& next, const StepPlan& plan,
           std::shared_ptr<ContextState> context,
           std::shared_ptr<StepState> state,
           std::shared_ptr<rpc::Tracer> tracer);

  absl::StatusOr<StageReport> Execute();

 private:
  // What a micro-batch leaves behind for its backward.
  struct Saved {
    Variable input;
    Variable result;  // output or, in the last stage, weighted loss; undefined
                      // where checkpointing drops it
    nn::GeneratorStates drawn_from;  // of the forward; only for checkpointing
  };

  bool is_last() const { return spec_.index == spec_.count - 1; }
  RowRange RowsOf(int micro_batch) const;
  absl::Status Run(const Instruction& step);
  absl::Status Forward(int micro_batch);
  absl::Status Backward(int micro_batch);
  void Weights(int micro_batch);
  void SendOn(int micro_batch, const Tensor& output);
  Variable WeightedLoss(const Variable& output, const Tensor& targets,
                        const RowRange& rows) const;
  void Score(const Tensor& output, const Tensor& targets,
             const Variable& weighted);
  // The result of a micro-batch again, with its graph.
  Variable Recompute(int micro_batch, const Saved& saved,
                     const Tensor& targets);

  nn::Module& module_;
  const StageSpec spec_;
  const std::optional<RRef<Stage>>& next_;
  const StepPlan plan_;
  const std::shared_ptr<ContextState> context_;
  const std::shared_ptr<StepState> state_;
  const std::shared_ptr<rpc::Tracer> tracer_;
  const std::string track_;  // of the trace
  const StepState::Deadline deadline_;
  const bool leaves_weights_;  // to instructions of the program
  std::map<int, Saved> saved_;
  std::map<int, LateGradients> late_;  // of the program's kWeights
  StageReport report_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/stage_routes.h"
#include "models/distributed/stage_streams.h"
#include "models/distributed/step_plan.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"
#include "models/nn/scopes.h"

namespace baton::dist {

// The computation of one pipeline stage in one step, one micro-batch after the
// other. If the plan does not train, the module is in eval mode as long as this
// object lives. Throws Error as the module does. Confined to one thread; it
// computes on that thread's current stream of the module's device.
class StageCompute {
 public:
  // Everything passed by reference, except `spec`, must outlive this object,
  // and so must `own`: the last stage's loss, a part of the module, if the plan
  // has Loss::kOwn. Uses the streams for weights. Postpones running statistics
  // if there are several forward streams or the spec says so.
  StageCompute(nn::Module& module, const StageSpec& spec, const StepPlan& plan,
               StageStreams streams, GradientSums& sums,
               nn::LossModule* own = nullptr);

  // Returns what goes to each target, given what came from each source. In the
  // last stage `targets` are for the loss, if the plan has one.
  OutputsOfStages Forward(int micro_batch, OutputsOfStages inputs,
                          const Tensor& targets);
  // Returns the gradients for those sources that are stages, given what each
  // target sent back; several gradients of one output are added from the last
  // target to the first. The last stage starts from the gradient of the loss;
  // undefined means 1. Parameters' gradients wait for WeightGrad, which
  // computes them after a kInputGrad.
  Parcels Backward(StageOp op, int micro_batch, Parcels gradients,
                   const Tensor& of_loss);
  // Adds the micro-batch's gradients of parameters to the sums.
  void WeightGrad(int micro_batch);

  // Updates running statistics. Call this once all work is done, on streams
  // that have joined.
  void MoveStatistics();
  // For plans that step parameters: restores running statistics and generators
  // to what they were before the step.
  void Undo() const;
  // Restores only the statistics, on the GPU, unless `condition`, f32 [] there,
  // is 0.
  void UndoIf(const Tensor& condition) const;

  // These return the last stage's results: the micro-batches' losses, each [],
  // and outputs; in training only the first output, if it is of rank 2.
  const std::vector<Tensor>& losses() const { return losses_; }
  const std::vector<Values>& outputs() const { return outputs_; }
  StageReport Report() const;

  const StageSpec& spec() const { return spec_; }
  const StageWiring& wiring() const { return wiring_; }
  const StageStreams& streams() const { return streams_; }
  Device device() const { return device_; }

 private:
  // What the forward of a micro-batch saves for its backward.
  struct Saved {
    std::vector<Variable> inputs;
    Tensor targets;
    // The outputs or, in the last stage, the weighted loss; empty if they are
    // computed again.
    std::vector<Variable> results;
    nn::GeneratorStates drawn_from;  // also only set if forwards are computed
                                     // again
  };
  // What the backward of a micro-batch leaves for the sums.
  struct Left {
    LeafGradients gradients;
    DeferredGradients late;
  };

  std::vector<Variable> InputsOf(OutputsOfStages given) const;
  OutputsOfStages ForTargets(const std::vector<Variable>& outputs,
                             const std::vector<Variable>& inputs) const;
  bool IsConstant(const Variable& output,
                  const std::vector<Variable>& inputs) const;
  std::vector<Variable> Compute(const std::vector<Variable>& inputs) const;
  Variable LossOf(const std::vector<Variable>& outputs,
                  const Tensor& targets) const;
  Variable WeightedLoss(const std::vector<Variable>& outputs,
                        const Tensor& targets) const;
  std::vector<Variable> Recompute(const Saved& saved) const;
  // Returns the sum of the gradients of each output.
  Values SumsOf(Parcels gradients, const std::vector<Variable>& outputs) const;
  Values RunBackward(StageOp op, const Saved& saved, Values gradients,
                     Left& left);
  void ComputeLate(Left& left);
  Tensor Correct() const;  // StageReport::correct

  nn::Module& module_;
  const Device device_;
  const StageSpec spec_;
  const StageWiring wiring_;
  const StepPlan& plan_;
  const StageStreams streams_;
  GradientSums& sums_;
  nn::LossModule* const own_;
  // The states before the step, kept if the step may be undone.
  nn::GeneratorStates drawn_from_;
  std::vector<Tensor> buffers_, kept_;
  std::optional<nn::EvalScope> evaluating_;
  nn::PostponedStatistics postponed_;
  std::map<int, Saved> saved_;
  std::map<int, Left> left_;
  size_t next_stream_ = 0;  // index into the streams for weights
  std::vector<Tensor> losses_;
  std::vector<Tensor> targets_;  // one for each of losses_
  std::vector<Values> outputs_;
};

}  // namespace baton::dist

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

// What one stage of a pipeline computes in one step, for one micro-batch after
// the other. While it lives, the module is in eval mode if the plan does not
// train. Throws Error as the module does. Confined to one thread, on whose
// current stream of the module's device it computes.
class StageCompute {
 public:
  // All that it is given by reference outlives it, but `spec`, and so does
  // `own`, the last stage's loss where the plan has Loss::kOwn, a part of the
  // module. Of the streams it uses those for weights, and postpones running
  // statistics where forwards have several and where the spec says so.
  StageCompute(nn::Module& module, const StageSpec& spec, const StepPlan& plan,
               StageStreams streams, GradientSums& sums,
               nn::LossModule* own = nullptr);

  // From what came of its sources what goes to its targets; of the last stage's
  // loss, where the plan has one, `targets`.
  OutputsOfStages Forward(int micro_batch, OutputsOfStages inputs,
                          const Tensor& targets);
  // From what its targets gave back that for the sources that are stages; what
  // several gave for one output is added up from the last of them on. Of the
  // last stage: from the gradient of the loss, undefined for one. Those of
  // parameters wait for WeightGrad, after a kInputGrad to be computed there.
  Parcels Backward(StageOp op, int micro_batch, Parcels gradients,
                   const Tensor& of_loss);
  // Adds the micro-batch's gradients of parameters to the sums.
  void WeightGrad(int micro_batch);

  // Once all work is done, on streams that have joined.
  void MoveStatistics();
  // Where the plan steps parameters: running statistics and generators are as
  // the step found them.
  void Undo() const;
  // Statistics alone, on the GPU, unless the condition, f32 [] there, is 0.
  void UndoIf(const Tensor& condition) const;

  // Of the last stage: losses of the micro-batches, each [], and outputs, of
  // training only the first where it is of rank 2.
  const std::vector<Tensor>& losses() const { return losses_; }
  const std::vector<Values>& outputs() const { return outputs_; }
  StageReport Report() const;

  const StageSpec& spec() const { return spec_; }
  const StageWiring& wiring() const { return wiring_; }
  const StageStreams& streams() const { return streams_; }
  Device device() const { return device_; }

 private:
  // What a micro-batch's forward leaves behind for its backward.
  struct Saved {
    std::vector<Variable> inputs;
    Tensor targets;
    // Outputs or, in the last stage, the weighted loss; none where they are
    // computed again.
    std::vector<Variable> results;
    nn::GeneratorStates drawn_from;  // likewise only then
  };
  // And its backward for the sums.
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
  // Of each output.
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
  // As the step found them, where it may be undone.
  nn::GeneratorStates drawn_from_;
  std::vector<Tensor> buffers_, kept_;
  std::optional<nn::EvalScope> evaluating_;
  nn::PostponedStatistics postponed_;
  std::map<int, Saved> saved_;
  std::map<int, Left> left_;
  size_t next_stream_ = 0;  // of those for weights
  std::vector<Tensor> losses_;
  std::vector<Tensor> targets_;  // as losses_
  std::vector<Values> outputs_;
};

}  // namespace baton::dist

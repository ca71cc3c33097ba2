// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/stage_compute.h"
#include "models/distributed/stage_links.h"
#include "models/distributed/stage_replicas.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_trace.h"

namespace baton::dist {

// One step of the stages that one thread runs: goes through the plan's program,
// each instruction taking what it needs from its stage's links, computing, and
// sending on what it made. On GPUs it only gives them their work, which goes on
// by itself. Confined to that thread.
class ProgramRun {
 public:
  struct RunStage {
    nn::Module& module;
    StageSpec spec;
    StageStreams streams;
    StageLinks& links;
    nn::LossModule* own_loss = nullptr;  // as StageCompute says
    StageReplicas* replicas = nullptr;   // null: there are none
  };
  struct Batch {
    // All rows of the inputs; undefined where no stage that is here takes one.
    Values inputs;
    Tensor targets = {};     // of the last stage, where there is a loss
    Tensor loss_scale = {};  // f32 [] there; undefined: 1
  };
  // All that is given by reference outlives it, as does `trace`, which times
  // each instruction on its device. Throws Error where the plan's micro-batches
  // do not add up.
  ProgramRun(const StepPlan& plan, const Batch& batch,
             const std::vector<RunStage>& stages, StepTrace* trace);

  // Once. An error names the stage. A stage that has replicas begins to reduce
  // its gradients as soon as it has them, while others go on; in the end all
  // are reduced.
  absl::Status Run();
  // Of the parameters of all stages, after a training Run.
  GradientSums& gradients() { return gradients_; }
  // Likewise, and none are left.
  LeafGradients TakeGradients() { return gradients_.Take(); }
  // Empty unless the last stage is here.
  StageReport Report() const;
  // The last stage, if it is here.
  const StageCompute* last() const;
  // As StageCompute says.
  void Undo() const;
  void UndoIf(const Tensor& condition) const;

 private:
  struct Entry {
    Entry(const RunStage& stage, const StepPlan& plan, GradientSums& sums)
        : compute(stage.module, stage.spec, plan, stage.streams, sums,
                  stage.own_loss),
          links(stage.links),
          replicas(plan.training ? stage.replicas : nullptr) {}
    StageCompute compute;
    StageLinks& links;
    StageReplicas* const replicas;
    // Of the program, by which it has all its gradients.
    const Instruction* last = nullptr;
    std::vector<size_t> of_batch = {};  // inputs of the batch that it takes
  };

  absl::Status CheckBatch();
  absl::Status Do(const Instruction& step);
  // What a backward needs of other stages.
  absl::StatusOr<Parcels> Receive(const Instruction& step, Entry& at) const;
  // What a forward needs of them and of the batch.
  absl::StatusOr<OutputsOfStages> ReceiveInputs(int micro_batch,
                                                Entry& at) const;
  void Forward(const Instruction& step, Entry& at, OutputsOfStages inputs);
  void Backward(const Instruction& step, Entry& at, Parcels gradients);
  void WeightGrad(const Instruction& step, Entry& at);
  template <typename Work>
  void OnDevice(const Instruction& step, const Values& needed,
                const Work& work);
  Tensor RowsOf(const Tensor& x, int micro_batch) const;

  const StepPlan& plan_;
  const Batch batch_;
  const std::vector<RowRange> rows_;
  StepTrace* const trace_;
  GradientSums gradients_;
  std::map<int, Entry> stages_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <type_traits>
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

// One step of the stages that one thread runs. Executes the plan's program:
// each instruction receives its inputs from the stage's links, computes, and
// sends its results. On GPUs it only enqueues work, which then runs
// asynchronously. Confined to that thread.
class ProgramRun {
 public:
  struct RunStage {
    nn::Module& module;
    StageSpec spec;
    StageStreams streams;
    StageLinks& links;
    nn::LossModule* own_loss = nullptr;  // as StageCompute says
    StageReplicas* replicas = nullptr;   // null if there are none
  };
  struct Batch {
    // All rows of the inputs; an input that no stage here takes is undefined.
    Values inputs;
    Tensor targets = {};     // for the last stage, if there is a loss
    Tensor loss_scale = {};  // f32 [] on its device; undefined means 1
  };
  // Everything passed by reference must outlive this object, and so must
  // `trace`, which times each instruction on its device. Throws Error if the
  // plan's micro-batches do not add up.
  ProgramRun(const StepPlan& plan, const Batch& batch,
             const std::vector<RunStage>& stages, StepTrace* trace);

  // Runs the program; call this once. An error names the stage. A stage with
  // replicas begins to reduce its gradients as soon as it has them, while other
  // stages go on; when Run returns, all are reduced.
  absl::Status Run();
  // Returns the gradients of all stages' parameters after a training Run.
  GradientSums& gradients() { return gradients_; }
  // Returns them and leaves none.
  LeafGradients TakeGradients() { return gradients_.Take(); }
  // Returns the last stage's results; empty unless the last stage is one of
  // these.
  StageReport Report() const;
  // Returns the last stage, or null if it is not one of these.
  const StageCompute* last() const;
  // See StageCompute.
  void Undo() const;
  void UndoIf(const std::function<Tensor(Device)>& condition_on) const;

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
    // The last instruction of the program that adds to its gradients.
    const Instruction* last = nullptr;
    std::vector<size_t> of_batch = {};  // places of the batch's inputs that it
                                        // takes
  };

  absl::Status CheckBatch();
  absl::Status Do(const Instruction& step);
  // Receives what a backward needs from other stages.
  absl::StatusOr<Parcels> Receive(const Instruction& step, Entry& at) const;
  // Receives what a forward needs from other stages and from the batch.
  absl::StatusOr<OutputsOfStages> ReceiveInputs(const Instruction& step,
                                                Entry& at) const;
  // Times how long `take` waits for what the instruction needs of stage `from`.
  template <typename Take>
  std::invoke_result_t<Take> Timed(const Instruction& step, const Entry& at,
                                   int from, const Stream& stream,
                                   const Take& take) const;
  void Forward(const Instruction& step, Entry& at, OutputsOfStages inputs);
  void Backward(const Instruction& step, Entry& at, Parcels gradients);
  void WeightGrad(const Instruction& step, Entry& at);
  // Waits until the gradients of a stage are the means over its replicas.
  absl::Status AwaitMeans(const Entry& at);
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

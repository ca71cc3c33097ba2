// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph.h"
#include "models/distributed/gradient_sums.h"
#include "models/distributed/local_links.h"
#include "models/distributed/program_run.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_trace.h"

namespace baton::dist {

// Returns why a program with such a stage is never recorded; empty if it may
// be. The host must be able to restore random numbers and running statistics,
// and reproducible bits (core/precision.h) are promised only for launched
// kernels.
std::string WhyNotRecorded(const nn::Module& module, const StageSpec& spec);

// A plan's program as the GPUs of one worker replay it: a whole training step
// except the optimizer's, including the waits for neighbors and the copies to
// them, in one launch by the host. At its end the GPUs of all workers agree
// whether the step counts. If it does not, running statistics are restored, and
// SkipOn prevents an optimizer's step that was enqueued after it from changing
// anything. Hence the host can enqueue the next step before this one has run.
// Confined to the compute thread.
class RecordedProgram {
 public:
  struct RecordedStage {
    nn::Module& module;
    StageSpec spec;
    nn::LossModule* own_loss = nullptr;  // as StageCompute says
    WindowMap windows = {};              // to stages of other workers
  };
  // Records the program without running it. `like` is a batch of the plan;
  // later batches must have the same shapes. `number` counts the steps of the
  // windows and of the first stage's GPU. Throws Error for what cannot be
  // recorded, also for windows of stages on several GPUs. A step of the plan
  // must have run before in another way.
  RecordedProgram(std::shared_ptr<const StepPlan> plan,
                  const ProgramRun::Batch& like,
                  const std::vector<RecordedStage>& stages,
                  const StepGate& gate, std::shared_ptr<StepNumber> number);

  // Returns the batch on the GPUs. Tensors that were elsewhere are copied
  // concurrently with computing and must stay unchanged until the step has run.
  // Any thread may call this.
  absl::StatusOr<ProgramRun::Batch> Upload(
      const ProgramRun::Batch& batch) const;
  // Copies a step's batch to the memory that the recording reads; returns
  // InvalidArgument for other shapes. Ignores undefined values, which are for
  // other workers.
  absl::Status Put(const ProgramRun::Batch& batch);
  // Enqueues the step on the GPUs. Inputs from other workers arrive through the
  // windows, whose step must have begun. `timed` is for trace().
  absl::Status Run(bool timed = true);

  // Returns the step's gradients, valid until the next Run.
  LeafGradients TakeGradients() const { return gradients_; }
  // Returns the report in pinned memory; valid once the current stream has
  // reached this point.
  StageReport Report() const;
  // For plans that step parameters; see ProgramRun::Undo. Does nothing if the
  // last Run enqueued nothing.
  void Undo() const;
  // Returns an f32 [] on that GPU: 0 if the step counts, else 1.
  const Tensor& SkipOn(Device gpu) const { return skips_.at(gpu.index()); }
  int64_t kernels() const { return graph_->kernels(); }
  // Returns the times of the newest timed step.
  StepTrace& trace() { return trace_; }

 private:
  static std::vector<Device> DevicesOf(const std::vector<RecordedStage>& all);
  std::vector<ProgramRun::RunStage> RunStages(
      const std::vector<RecordedStage>& stages);
  // Enqueues the agreement on the first GPU's current stream, after the
  // program, and makes its result known to the other GPUs.
  void Agree(const std::vector<RecordedStage>& stages, const StepGate& gate);

  const std::shared_ptr<const StepPlan> plan_;
  const std::shared_ptr<StepNumber> number_;
  std::map<int, Tensor> skips_;  // by index of the GPU
  ProgramRun::Batch batch_;      // the memory that the recording reads
  StepTrace trace_;
  std::map<int, LocalLinks> links_;
  std::optional<ProgramRun> run_;
  std::optional<Graph> graph_;
  LeafGradients gradients_;
  StageReport report_;
  bool launched_ = false;  // whether the last Run did
};

}  // namespace baton::dist

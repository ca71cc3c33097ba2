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

// Why a program with such a stage is never recorded; empty: it may be. Its
// random numbers and running statistics must be the host's to put back, and
// equal bits (core/precision.h) are those of work that is launched.
std::string WhyNotRecorded(const nn::Module& module, const StageSpec& spec);

// The program of a plan as the GPUs of one worker replay it: a whole training
// step but for the optimizer's, with the waits for neighbours and the copies to
// them, for one launch of the host. At its end the GPUs of all workers agree
// whether the step counts; where it does not, running statistics are as they
// were, and skip() keeps an optimizer's step, given after it, from changing
// anything. So the host can give GPUs the next step before this one has run.
// Confined to the thread that computes.
class RecordedProgram {
 public:
  struct RecordedStage {
    nn::Module& module;
    StageSpec spec;
    nn::LossModule* own_loss = nullptr;  // as StageCompute says
    WindowMap windows = {};              // to stages of other workers
  };
  // Records; nothing runs. `like`: a batch of the plan, whose values later ones
  // have the shapes of. `number`: of the windows and of this worker's steps;
  // null where its stages lie on several GPUs, which then agree with nobody.
  // Throws Error for what cannot be recorded: run a step of the plan before, in
  // another way.
  RecordedProgram(std::shared_ptr<const StepPlan> plan,
                  const ProgramRun::Batch& like,
                  const std::vector<RecordedStage>& stages,
                  const StepGate& gate, std::shared_ptr<StepNumber> number);

  // The batch on the GPUs. What was elsewhere is copied beside what they
  // compute, and must stay until the step has run. On any thread.
  absl::StatusOr<ProgramRun::Batch> Upload(
      const ProgramRun::Batch& batch) const;
  // Copies a step's batch to where the recording reads it; InvalidArgument for
  // other shapes. Undefined values are not for here.
  absl::Status Put(const ProgramRun::Batch& batch);
  // Gives the GPUs that step. What it needs of other workers comes through the
  // windows, whose step has begun. `timed`: for trace().
  absl::Status Run(bool timed = true);

  // What the step leaves, until the next Run.
  LeafGradients TakeGradients() const { return gradients_; }
  // In pinned memory, once the current stream has come so far.
  StageReport Report() const;
  // Where the plan steps parameters: as ProgramRun says. Nothing where the last
  // Run gave GPUs nothing.
  void Undo() const;
  // f32 []: 0 where the step counts, else 1; undefined where nobody agrees.
  const Tensor& skip() const { return skip_; }
  // Of the timed steps since its last Begin, the newest.
  StepTrace& trace() { return trace_; }

 private:
  static std::vector<Device> DevicesOf(const std::vector<RecordedStage>& all);
  std::vector<ProgramRun::RunStage> RunStages(
      const std::vector<RecordedStage>& stages);
  // On the current stream, after the program.
  void Agree(const std::vector<RecordedStage>& stages,
             const StepGate& gate) const;

  const std::shared_ptr<const StepPlan> plan_;
  const std::shared_ptr<StepNumber> number_;
  Tensor skip_;
  ProgramRun::Batch batch_;  // what the recording reads
  StepTrace trace_;
  std::map<int, LocalLinks> links_;
  std::optional<ProgramRun> run_;
  std::optional<Graph> graph_;
  LeafGradients gradients_;
  StageReport report_;
  bool launched_ = false;  // by the last Run
};

}  // namespace baton::dist

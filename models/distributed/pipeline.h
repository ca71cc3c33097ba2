// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "models/distributed/module.h"
#include "models/distributed/schedule.h"
#include "models/distributed/stage.h"
#include "rpc/agent.h"

namespace baton::dist {

// Every worker's registry needs it, beside RegisterModule<M> for the modules.
void RegisterPipeline(rpc::Registry& registry);

struct PipelineOptions {
  int64_t split_size = 0;  // rows of a micro-batch; 0: the whole batch
  Schedule schedule = Schedule::kFillDrain;
  Loss loss = Loss::kCrossEntropy;
  bool checkpoint = false;  // recompute activations, see StageSpec
  // Of each stage, as core/parallel.h counts them; 0: the worker's own setting.
  int compute_threads = 0;
  std::chrono::milliseconds step_timeout{600'000};
};

// A module, wherever it lives, as one stage of a pipeline.
class StageModule {
 public:
  // NOLINTBEGIN(google-explicit-constructor): lists of modules read as such
  template <typename M>
  StageModule(const RRef<M>& module)
      : make_([module](rpc::Agent& agent, const StageSpec& spec,
                       const std::optional<RRef<Stage>>& next) {
          return agent.Remote<&module_calls::MakeStage<M>>(module.owner(),
                                                           module, spec, next);
        }) {}
  template <typename M>
  StageModule(const Module<M>& module) : StageModule(module.ref()) {}
  // NOLINTEND(google-explicit-constructor)

  RRef<Stage> MakeStage(rpc::Agent& agent, const StageSpec& spec,
                        const std::optional<RRef<Stage>>& next) const {
    return make_(agent, spec, next);
  }

 private:
  std::function<RRef<Stage>(rpc::Agent&, const StageSpec&,
                            const std::optional<RRef<Stage>>&)>
      make_;
};

// Trains a chain of modules, each at its worker, in micro-batches that are in
// flight on all stages at once. The trainer sends every stage one program a
// step, the inputs to the first and the targets to the last; activations and
// gradients pass from stage to stage. A step's gradients equal, bit for bit,
// those of one process that accumulates over the same micro-batches in order.
//
//   ASSIGN_OR_RETURN(auto pipeline, dist::Pipeline::Make(
//       agent, {.split_size = 20}, {front, back}));
//   dist::Context ctx(agent);
//   ASSIGN_OR_RETURN(auto step, pipeline->Step(ctx, images, labels));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Modules that read the other rows of a batch (batch norm) see micro-batches.
// Must not outlive the agent. Thread-compatible.
class Pipeline {
 public:
  // InvalidArgument for no modules or bad options; FailedPrecondition where a
  // module is part of another pipeline, which must be dropped first; else the
  // error of the worker that could not make its stage, each within the agent's
  // default timeout.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Make(
      rpc::Agent& agent, const PipelineOptions& options,
      const std::vector<StageModule>& modules);

  struct StepResult {
    double loss = 0;      // mean over the batch
    double accuracy = 0;  // of rank-2 outputs; else 0
  };
  // Forward and backward of one batch; inputs and targets have its rows first.
  // Gradients are left in `ctx`, for an optimizer; none to rely on after an
  // error, which names stage and worker. All stages have given up the step by
  // then or are lost, and the next may follow. Modules run in the mode that
  // they are in: what was set to eval stays frozen.
  absl::StatusOr<StepResult> Step(const Context& ctx, const Tensor& inputs,
                                  const Tensor& targets);

  struct EvalResult {
    Tensor outputs;
    double loss = 0;
    double accuracy = 0;
  };
  // The forwards alone, in eval mode, after which each module is in the mode
  // that it had before. Without targets no loss and accuracy.
  absl::StatusOr<EvalResult> Evaluate(const Tensor& inputs,
                                      const Tensor& targets = Tensor());

  int num_stages() const { return static_cast<int>(stages_.size()); }
  const PipelineOptions& options() const { return options_; }
  void set_split_size(int64_t rows) { options_.split_size = rows; }

 private:
  Pipeline(const PipelineOptions& options, std::vector<RRef<Stage>> stages)
      : options_(options), stages_(std::move(stages)) {}

  absl::StatusOr<StepPlan> PlanFor(const Tensor& inputs, const Tensor& targets,
                                   bool training);
  // Runs one step on all stages; the last one's report.
  absl::StatusOr<StageReport> RunStep(
      const StepPlan& plan, std::shared_ptr<rpc::CallScope> scope,
      const std::vector<std::vector<Instruction>>& programs,
      const Tensor& inputs, const Tensor& targets);
  std::vector<Future<bool>> Feed(const StepPlan& plan, const Tensor& inputs,
                                 const Tensor& targets);
  void AbortStep(uint64_t step, const absl::Status& why);
  rpc::CallOptions Calls() const;

  PipelineOptions options_;
  const std::vector<RRef<Stage>> stages_;
  uint64_t last_step_ = 0;
};

}  // namespace baton::dist

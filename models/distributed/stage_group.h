// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/stage.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_state.h"
#include "rpc/agent.h"
#include "rpc/object_hold.h"

namespace baton::dist {

// The stages of one pipeline that one worker has: runs the program that the
// trainer sends for a step, all stages in that one order, on a compute thread
// of its own. Other calls of the modules wait until it has run. Gradients of
// parameters go to the context of the Run. An error ends the step here and at
// the neighbours of the stage. Thread-safe.
class StageGroup {
 public:
  // The stages are here. `compute_threads`: 0 for the worker's own setting.
  static absl::StatusOr<std::unique_ptr<StageGroup>> Make(
      const std::vector<RRef<Stage>>& stages, int32_t compute_threads);
  StageGroup(std::vector<std::shared_ptr<Stage>> stages, int compute_threads);
  ~StageGroup();  // fails a step that runs

  // Done when the whole program has run. Training needs a dist::Context.
  Future<GroupReport> Run(rpc::CallContext& call, const StepPlan& plan);
  void Abort(uint64_t step, const absl::Status& why);

  using Exports =
      rpc::Methods<&StageGroup::Make, rpc::kConcurrent<&StageGroup::Run>,
                   rpc::kConcurrent<&StageGroup::Abort>>;

 private:
  // What a step's run needs, beside its plan.
  struct Step {
    StepState::Deadline told, deadline;
    std::shared_ptr<ContextState> context;         // null without training
    std::vector<std::shared_ptr<StepState>> mail;  // of each stage
    std::shared_ptr<rpc::Tracer> tracer;
  };
  absl::Status Check(const StepPlan& plan) const;
  absl::StatusOr<Step> Begin(rpc::CallContext& call, const StepPlan& plan);
  // On the compute thread; lets go of the modules when the program has run.
  absl::StatusOr<GroupReport> Execute(const StepPlan& plan, const Step& step,
                                      rpc::ObjectHold hold);

  const std::vector<std::shared_ptr<Stage>> stages_;
  const int compute_threads_;
  Mutex mutex_;
  uint64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;  // that was begun
  // Runs one program at a time.
  std::unique_ptr<ThreadPool> compute_;
};

}  // namespace baton::dist

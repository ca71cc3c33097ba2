// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_state.h"
#include "models/nn/module.h"
#include "rpc/agent.h"

namespace baton::dist {

// One stage of a pipeline, at the worker of its module: runs the programs that
// the trainer sends on a compute thread of its own. Activations go to the next
// stage as calls, whose answers are the gradients. Between steps it holds
// nothing but its module. Gradients of parameters go to the context of the Run.
// An error ends the step here and at both neighbours. Thread-safe.
class Stage {
 public:
  // `next` is empty for the last stage.
  Stage(std::shared_ptr<nn::Module> module, const StageSpec& spec,
        std::optional<RRef<Stage>> next);
  ~Stage();  // fails a step that runs

  // Done when the whole program has run. Training needs a dist::Context.
  Future<StageReport> Run(rpc::CallContext& call, const StepPlan& plan);
  // From the stage before, or the trainer; may come before the Run. The answer
  // is the input's gradient.
  Future<Tensor> PutInput(uint64_t step, int32_t micro_batch,
                          const Tensor& input);
  // Of the whole batch; for the last stage.
  absl::Status PutTargets(uint64_t step, const Tensor& targets);
  void Abort(uint64_t step, const absl::Status& why);

  using Exports = rpc::Methods<&Stage::Run, &Stage::PutInput,
                               &Stage::PutTargets, &Stage::Abort>;

 private:
  // The step's mail; a newer step ends an older one. Aborted when it is over.
  absl::StatusOr<std::shared_ptr<StepState>> Open(uint64_t step);
  void Close(const std::shared_ptr<StepState>& state, const absl::Status& why);
  absl::Status Explain(const absl::Status& status) const;

  const std::shared_ptr<nn::Module> module_;
  const StageSpec spec_;
  const std::optional<RRef<Stage>> next_;
  Mutex mutex_;
  std::shared_ptr<StepState> state_ ABSL_GUARDED_BY(mutex_);
  uint64_t over_ ABSL_GUARDED_BY(mutex_) = 0;  // steps up to it have ended
  // Runs one program at a time; nothing else computes with the module.
  std::unique_ptr<ThreadPool> compute_;
};

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/mail_links.h"
#include "models/distributed/step_plan.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"
#include "rpc/agent.h"

namespace baton::dist {

// A user's own loss, at the worker of the last stage (pipeline_loss.h).
struct StageLoss {
  std::shared_ptr<nn::LossModule> module;
  std::shared_ptr<rpc::ObjectLock> lock;
};

// One stage of a pipeline, at the worker of its module: takes the mail of the
// steps that are under way, which the worker's StageGroup works off.
// Activations go to stages behind it, the answers are the gradients: as calls
// between workers, as they are within one. Between steps it holds nothing but
// its module. Thread-safe.
class Stage {
 public:
  // For a handler; `behind` are the stages that outputs go to, by index. The
  // last stage alone has a loss, if it is a user's own. InvalidArgument for
  // routes that are wrong or lead to a stage that is not among these;
  // FailedPrecondition names the pipeline that has the module already, if it
  // goes on having it: waits for half of the call's time, but five seconds at
  // most, for one that was dropped.
  static absl::StatusOr<std::unique_ptr<Stage>> Make(
      const rpc::CallContext& call, std::shared_ptr<nn::Module> module,
      std::shared_ptr<rpc::ObjectLock> lock, const StageSpec& spec,
      std::map<int32_t, RRef<Stage>> behind,
      std::shared_ptr<const StageLoss> loss = nullptr);
  ~Stage();  // fails the steps under way

  // From a stage before this one; may come before the step begins here. The
  // answer is of the inputs' gradients.
  Future<Values> PutInputs(uint64_t step, int32_t source, int32_t micro_batch,
                           const Outputs& inputs);

  using Exports = rpc::Methods<rpc::kConcurrent<&Stage::PutInputs>>;

  // For the group.
  // The step's links; Aborted when the step is over.
  absl::StatusOr<std::shared_ptr<MailLinks>> Open(uint64_t step);
  // The steps before this one are over.
  void Begin(uint64_t step);
  // Of the last stage with the loss, if that is a user's own, as a child: what
  // holds for its state and mode holds for the loss's.
  nn::Module& module() const { return *module_; }
  nn::LossModule* loss() const { return loss_ ? loss_->module.get() : nullptr; }
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks() const;
  const StageSpec& spec() const { return spec_; }
  // Where outputs go, by stage.
  const std::map<int32_t, RRef<Stage>>& behind() const { return behind_; }

 private:
  Stage(std::shared_ptr<nn::Module> module,
        std::shared_ptr<rpc::ObjectLock> lock,
        std::shared_ptr<rpc::Reservation> reservation, const StageSpec& spec,
        std::map<int32_t, RRef<Stage>> behind,
        std::shared_ptr<const StageLoss> loss);

  const std::shared_ptr<nn::Module> module_;
  const std::shared_ptr<rpc::ObjectLock> lock_;  // of the module
  const std::shared_ptr<rpc::Reservation> reservation_;
  const StageSpec spec_;
  const StageWiring wiring_;
  const std::map<int32_t, RRef<Stage>> behind_;
  const std::shared_ptr<const StageLoss> loss_;
  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<MailLinks>> mail_ ABSL_GUARDED_BY(mutex_);
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // that is not over
};

}  // namespace baton::dist

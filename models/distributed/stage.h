// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/link_window.h"
#include "models/distributed/mail_links.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/window.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"
#include "rpc/agent.h"

namespace baton::dist {

// A user's own loss at the worker of the last stage (pipeline_loss.h).
struct StageLoss {
  std::shared_ptr<nn::LossModule> module;
  std::shared_ptr<rpc::ObjectLock> lock;
};

// One stage of a pipeline, at the worker of its module. It receives the values
// sent to the stage in the steps under way, which the worker's StageGroup
// executes. Activations go to later stages as calls, whose answers are the
// gradients, also between stages of one worker. Between steps it holds nothing
// but its module. Thread-safe.
class Stage {
 public:
  // Makes the stage, in a handler. `behind` are the stages that outputs go to,
  // by index. Only the last stage has a loss, if it is a user's own. Returns
  // InvalidArgument for routes that are wrong or lead to a stage that is not in
  // `behind`. If another pipeline has the module, waits until that pipeline is
  // dropped, at most for half of the call's time or five seconds; then returns
  // FailedPrecondition, which names the pipeline.
  static absl::StatusOr<std::unique_ptr<Stage>> Make(
      const rpc::CallContext& call, std::shared_ptr<nn::Module> module,
      std::shared_ptr<rpc::ObjectLock> lock, const StageSpec& spec,
      std::map<int32_t, RRef<Stage>> behind,
      std::shared_ptr<const StageLoss> loss = nullptr);
  ~Stage();  // fails the steps under way

  // Called by a stage before this one, possibly before the step begins here.
  // The answer contains the gradients of the inputs. A caller that gives the
  // call up fails the step here, which may never begin.
  Future<Values> PutInputs(rpc::CallContext& call, uint64_t step,
                           int32_t source, int32_t micro_batch,
                           const Outputs& inputs);

  // Called by a stage before this one, for steps of a plan: makes this stage's
  // window and opens the caller's. Unavailable says why there are no windows.
  struct WindowOffer {
    uint64_t plan = 0;
    int32_t from = 0;
    bool required = false;  // even within one process or on one GPU
    std::vector<int32_t> slots;
    std::vector<ParcelSpec> outputs, gradients;
    WindowHandle of_gradients;
    static constexpr auto Fields() {
      return std::tuple{&WindowOffer::plan,        &WindowOffer::from,
                        &WindowOffer::required,    &WindowOffer::slots,
                        &WindowOffer::outputs,     &WindowOffer::gradients,
                        &WindowOffer::of_gradients};
    }
  };
  absl::StatusOr<WindowHandle> TakeOffer(const WindowOffer& offer);

  using Exports = rpc::Methods<rpc::kConcurrent<&Stage::PutInputs>,
                               rpc::kConcurrent<&Stage::TakeOffer>>;

  // Does the same for a stage of this worker, without a call.
  Future<Values> TakeInputs(uint64_t step, int32_t source, int32_t micro_batch,
                            const Outputs& inputs);

  // The following are for the StageGroup.
  // Sets the number of the worker's steps on the module's device; call it
  // before the first step.
  void set_number(std::shared_ptr<StepNumber> number);
  // Returns the links of a step; Aborted if the step is over.
  absl::StatusOr<std::shared_ptr<MailLinks>> Open(uint64_t step);
  // Marks all steps before `step` as over; plans before `oldest_plan` are not
  // used again.
  void Begin(uint64_t step, uint64_t oldest_plan);
  // Returns those of a step's window links that end at this stage.
  absl::StatusOr<WindowMap> WindowsOf(uint64_t plan,
                                      const std::vector<LinkEnds>& links);
  // Returns all windows of the plan.
  WindowMap WindowsOf(uint64_t plan);
  // Records why windows that were made are not used.
  void SayNoWindow(const std::string& why);
  // Makes windows to later stages at other workers, after a training step of
  // the plan has passed values there by messages. Calls those stages and waits
  // for them, at most for `time`.
  std::vector<MadeWindow> MakeWindows(const StepPlan& plan, Windows use,
                                      const std::map<int, Passed>& passed,
                                      std::chrono::milliseconds time);
  // The state of the window to a stage, for Pipeline::Links; empty if there is
  // none because the stage is local or gets messages.
  struct WindowState {
    bool used = false;  // in the last training step
    std::string why_not{};
  };
  WindowState WindowTo(int32_t target);
  // Returns the stage's module. The last stage's has a user's own loss as a
  // child, so that the loss shares its state and mode.
  nn::Module& module() const { return *module_; }
  // Returns the same module, but its passes are replayed from recordings if
  // possible.
  nn::Module& replayed() const { return *replayed_; }
  nn::LossModule* loss() const { return loss_ ? loss_->module.get() : nullptr; }
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks() const;
  const StageSpec& spec() const { return spec_; }
  // Returns the stages that outputs go to, by index.
  const std::map<int32_t, RRef<Stage>>& behind() const { return behind_; }

 private:
  Stage(std::shared_ptr<nn::Module> module,
        std::shared_ptr<rpc::ObjectLock> lock,
        std::shared_ptr<rpc::Reservation> reservation, const StageSpec& spec,
        std::map<int32_t, RRef<Stage>> behind,
        std::shared_ptr<const StageLoss> loss);

  std::shared_ptr<StepNumber> number();
  absl::Status MakeWindow(const StepPlan& plan, int32_t target, Windows use,
                          const Passed& passed, std::chrono::milliseconds time);

  const std::shared_ptr<nn::Module> module_, replayed_;
  const std::shared_ptr<rpc::ObjectLock> lock_;  // of the module
  const std::shared_ptr<rpc::Reservation> reservation_;
  const StageSpec spec_;
  const StageWiring wiring_;
  const std::map<int32_t, RRef<Stage>> behind_;
  const std::shared_ptr<const StageLoss> loss_;
  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<MailLinks>> mail_ ABSL_GUARDED_BY(mutex_);
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // the oldest step that is not
                                                 // over
  std::shared_ptr<StepNumber> number_ ABSL_GUARDED_BY(mutex_);
  // By plan and the stage at the other end.
  std::map<std::pair<uint64_t, int>, std::shared_ptr<LinkWindow>> windows_
      ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, WindowState> window_to_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist

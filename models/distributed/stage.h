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

  // From a stage before this one, for steps of a plan: makes this stage's
  // window, opens the other one's. Unavailable says why there are to be none.
  struct WindowOffer {
    uint64_t plan = 0;
    int32_t from = 0;
    bool required = false;  // in one process or on one GPU, too
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

  // For the group.
  // Of the steps of its worker, on the device of the module; before the first.
  void set_number(std::shared_ptr<StepNumber> number);
  // The step's links; Aborted when the step is over.
  absl::StatusOr<std::shared_ptr<MailLinks>> Open(uint64_t step);
  // The steps before this one are over, and plans before that one are named no
  // more.
  void Begin(uint64_t step, uint64_t oldest_plan);
  // Of the step's links that go by windows those that end here.
  absl::StatusOr<WindowMap> WindowsOf(uint64_t plan,
                                      const std::vector<LinkEnds>& links);
  // All that the plan has.
  WindowMap WindowsOf(uint64_t plan);
  // Why those that were made are not used.
  void SayNoWindow(const std::string& why);
  // Makes windows to stages behind it at other workers, once a training step of
  // the plan has passed values there by mail. Calls those stages, and waits for
  // as long as that takes, or for the time that is given.
  std::vector<MadeWindow> MakeWindows(const StepPlan& plan, Windows use,
                                      const std::map<int, Passed>& passed,
                                      std::chrono::milliseconds time);
  // To the stage, for Pipeline::Links; nothing where it goes by mail or is
  // local.
  struct WindowState {
    bool used = false;  // in the last training step
    std::string why_not{};
  };
  WindowState WindowTo(int32_t target);
  // Of the last stage with the loss, if that is a user's own, as a child: what
  // holds for its state and mode holds for the loss's.
  nn::Module& module() const { return *module_; }
  // The same, whose passes are replayed where that can be.
  nn::Module& replayed() const { return *replayed_; }
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
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // that is not over
  std::shared_ptr<StepNumber> number_ ABSL_GUARDED_BY(mutex_);
  // By plan, and the stage at the other end.
  std::map<std::pair<uint64_t, int>, std::shared_ptr<LinkWindow>> windows_
      ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, WindowState> window_to_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist

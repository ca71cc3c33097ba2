// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_group.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "core/parallel.h"
#include "core/status.h"
#include "models/distributed/stage_run.h"

namespace baton::dist {
namespace {

using StepClock = std::chrono::steady_clock;

// Longer limits, which mean none, would overflow what is added to them.
constexpr std::chrono::hours kFarAway{24 * 365};

double SecondsSince(StepClock::time_point begin) {
  return std::chrono::duration<double>(StepClock::now() - begin).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageGroup>> StageGroup::Make(
    const std::vector<RRef<Stage>>& stages, int32_t compute_threads) {
  std::vector<std::shared_ptr<Stage>> local;
  for (const RRef<Stage>& stage : stages) {
    ASSIGN_OR_RETURN(auto here, stage.LocalValue());
    local.push_back(std::move(here));
  }
  if (local.empty()) {
    return absl::InvalidArgumentError("a worker's group needs a stage");
  }
  return std::make_unique<StageGroup>(std::move(local), compute_threads);
}

StageGroup::StageGroup(std::vector<std::shared_ptr<Stage>> stages,
                       int compute_threads)
    : stages_(std::move(stages)),
      compute_threads_(compute_threads),
      compute_(std::make_unique<ThreadPool>(
          1, absl::StrCat("stage-", stages_.front()->spec().index))) {}

StageGroup::~StageGroup() {
  uint64_t last = 0;
  {
    MutexLock lock(mutex_);
    last = last_step_;
  }
  Abort(last, absl::CancelledError("the stages were dropped"));
  compute_.reset();  // joins, while the rest is still there
}

absl::Status StageGroup::Check(const StepPlan& plan) const {
  if (plan.rows < 1 || plan.split_size < 1 || plan.micro_batches < 1 ||
      (plan.rows + plan.split_size - 1) / plan.split_size !=
          plan.micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.rows, " rows in parts of ", plan.split_size,
                     " are not ", plan.micro_batches, " micro-batches"));
  }
  std::vector<int> here;
  for (const auto& stage : stages_) {
    here.push_back(stage->spec().index);
    if (plan.training && stage->is_last() && plan.loss == Loss::kNone)
      return absl::InvalidArgumentError("training needs a loss");
  }
  return CheckProgram(plan.program, here, plan.micro_batches);
}

absl::StatusOr<StageGroup::Step> StageGroup::Begin(rpc::CallContext& call,
                                                   const StepPlan& plan) {
  Step step;
  step.told = StepClock::now();
  step.deadline =
      step.told + std::min<std::chrono::milliseconds>(plan.time_left, kFarAway);
  step.tracer = call.agent().tracer();
  RETURN_IF_ERROR(Check(plan));
  if (plan.training) {
    ASSIGN_OR_RETURN(step.context, ContextOf(call));
  }
  {
    MutexLock lock(mutex_);
    last_step_ = std::max(last_step_, plan.step);
  }
  for (const auto& stage : stages_) {
    ASSIGN_OR_RETURN(auto mail, stage->Open(plan.step));
    step.mail.push_back(std::move(mail));
  }
  return step;
}

Future<GroupReport> StageGroup::Run(rpc::CallContext& call,
                                    const StepPlan& plan) {
  absl::StatusOr<Step> step = Begin(call, plan);
  if (!step.ok()) {
    Abort(plan.step, step.status());
    return ReadyFuture<GroupReport>(step.status());
  }
  call.OnCancel([mail = step->mail](const absl::Status& why) {
    for (const auto& of_stage : mail)
      of_stage->Fail(Annotate(why, "the trainer gave up the step"));
  });
  Promise<GroupReport> promise;
  std::vector<std::shared_ptr<rpc::ObjectLock>> locks;
  for (const auto& stage : stages_) locks.push_back(stage->lock());
  rpc::HoldObjects(
      call, std::move(locks), rpc::Access::kExclusive,
      [this, plan, promise,
       step = *std::move(step)](absl::StatusOr<rpc::ObjectHold> hold) {
        if (!hold.ok()) {
          Abort(plan.step, hold.status());
          promise.Set(hold.status());
          return;
        }
        compute_->Post([this, plan, promise, step,
                        hold = *std::move(hold)]() mutable {
          auto report = Execute(plan, step, std::move(hold));
          Abort(plan.step, report.ok() ? absl::AbortedError("the step is over")
                                       : report.status());
          promise.Set(std::move(report));
        });
      });
  return promise.future();
}

absl::StatusOr<GroupReport> StageGroup::Execute(const StepPlan& plan,
                                                const Step& step,
                                                rpc::ObjectHold hold) {
  const rpc::internal::HoldsOfThread within(hold.holds());
  if (compute_threads_ > 0) SetComputeThreads(compute_threads_);
  std::map<int, StageRun> runs;
  for (size_t i = 0; i < stages_.size(); ++i) {
    runs.try_emplace(stages_[i]->spec().index, *stages_[i], plan, step.deadline,
                     step.context, step.mail[i], step.tracer);
  }
  GroupReport report;
  for (const Instruction& instruction : plan.program) {
    StageRun& run = runs.at(instruction.stage);
    const double waited = run.waited_s();
    const StepClock::time_point begin = StepClock::now();
    RETURN_IF_ERROR(run.Run(instruction));
    report.seconds.push_back(SecondsSince(begin) - (run.waited_s() - waited));
  }
  report.until_end_s = SecondsSince(step.told);
  if (stages_.back()->is_last())
    report.last = std::move(runs.at(stages_.back()->spec().index).report());
  return report;
}

void StageGroup::Abort(uint64_t step, const absl::Status& why) {
  for (const auto& stage : stages_) stage->End(step, why);
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "core/parallel.h"
#include "models/distributed/stage_run.h"

namespace baton::dist {
namespace {

// For a pipeline that was dropped to let go of its modules.
constexpr std::chrono::milliseconds kHandOver{5000};

absl::Status CheckPlan(const StepPlan& plan, const StageSpec& spec) {
  if (plan.rows < 1 || plan.split_size < 1 || plan.micro_batches < 1 ||
      (plan.rows + plan.split_size - 1) / plan.split_size !=
          plan.micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.rows, " rows in parts of ", plan.split_size,
                     " are not ", plan.micro_batches, " micro-batches"));
  }
  if (plan.training && spec.index == spec.count - 1 &&
      plan.loss == Loss::kNone) {
    return absl::InvalidArgumentError("training needs a loss");
  }
  return CheckProgram(plan.program, plan.micro_batches);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> Stage::Make(
    const rpc::CallContext& call, std::shared_ptr<nn::Module> module,
    std::shared_ptr<rpc::ObjectLock> lock, const StageSpec& spec,
    std::optional<RRef<Stage>> next) {
  const std::string who =
      absl::StrCat("stage ", spec.index, " of ", spec.count,
                   " of a pipeline of worker ", call.caller().name);
  const auto end =
      std::chrono::steady_clock::now() +
      std::min<std::chrono::milliseconds>(call.remaining() / 2, kHandOver);
  auto reservation = lock->AwaitReservation(who, end);
  if (!reservation.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        reservation.status().message(),
        "; a module takes part in one pipeline at a time: drop that Pipeline "
        "first, or give this one a module of its own"));
  }
  return std::unique_ptr<Stage>(new Stage(std::move(module), std::move(lock),
                                          *std::move(reservation), spec,
                                          std::move(next)));
}

Stage::Stage(std::shared_ptr<nn::Module> module,
             std::shared_ptr<rpc::ObjectLock> lock,
             std::shared_ptr<rpc::Reservation> reservation,
             const StageSpec& spec, std::optional<RRef<Stage>> next)
    : module_(std::move(module)),
      lock_(std::move(lock)),
      reservation_(std::move(reservation)),
      spec_(spec),
      next_(std::move(next)),
      compute_(std::make_unique<ThreadPool>(
          1, absl::StrCat("stage-", spec.index))) {}

Stage::~Stage() {
  {
    MutexLock lock(mutex_);
    if (state_ != nullptr) {
      state_->Fail(Explain(absl::CancelledError("the stage was dropped")));
    }
  }
  compute_.reset();  // joins, while the rest is still there
}

absl::Status Stage::Explain(const absl::Status& status) const {
  return Annotate(status,
                  absl::StrCat("stage ", spec_.index, " of ", spec_.count));
}

absl::StatusOr<std::shared_ptr<StepState>> Stage::Open(uint64_t step) {
  std::shared_ptr<StepState> old;
  std::shared_ptr<StepState> state;
  {
    MutexLock lock(mutex_);
    if (step <= over_ || (state_ != nullptr && step < state_->step())) {
      return Explain(
          absl::AbortedError(absl::StrCat("step ", step, " is over")));
    }
    if (state_ != nullptr && state_->step() == step) return state_;
    old = std::move(state_);
    state_ = state = std::make_shared<StepState>(step);
  }
  if (old != nullptr) {
    old->Fail(Explain(absl::AbortedError("a newer step began")));
  }
  return state;
}

void Stage::Close(const std::shared_ptr<StepState>& state,
                  const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    over_ = std::max(over_, state->step());
    if (state_ == state) state_ = nullptr;
  }
  state->Fail(why);
}

Future<StageReport> Stage::Run(rpc::CallContext& call, const StepPlan& plan) {
  std::shared_ptr<ContextState> context;
  absl::Status valid = CheckPlan(plan, spec_);
  if (valid.ok() && plan.training) {
    absl::StatusOr<std::shared_ptr<ContextState>> given = ContextOf(call);
    valid = given.status();
    if (given.ok()) context = *given;
  }
  absl::StatusOr<std::shared_ptr<StepState>> state = Open(plan.step);
  if (valid.ok()) valid = state.status();
  if (!valid.ok()) {
    if (state.ok()) Close(*state, Explain(valid));
    return ReadyFuture<StageReport>(valid);
  }
  call.OnCancel([state = *state](const absl::Status& why) {
    state->Fail(Annotate(why, "the trainer gave up the step"));
  });
  Promise<StageReport> promise;
  rpc::HoldObjects(
      call, {lock_}, rpc::Access::kExclusive,
      [this, plan, promise, context, state = *state,
       tracer = call.agent().tracer()](absl::StatusOr<rpc::ObjectHold> hold) {
        if (!hold.ok()) {
          const absl::Status why = Explain(hold.status());
          Close(state, why);
          promise.Set(why);
          return;
        }
        compute_->Post([this, plan, promise, context, state, tracer,
                        hold = *std::move(hold)]() mutable {
          StageRun run(*module_, spec_, next_, plan, context, state, tracer);
          absl::StatusOr<StageReport> report = Execute(run, std::move(hold));
          absl::Status status = report.status();
          if (!status.ok()) report = status = Explain(status);
          Close(state,
                status.ok() ? absl::AbortedError("the step is over") : status);
          promise.Set(std::move(report));
        });
      });
  return promise.future();
}

absl::StatusOr<StageReport> Stage::Execute(StageRun& run,
                                           rpc::ObjectHold hold) {
  const rpc::internal::HoldsOfThread within(hold.holds());
  if (spec_.compute_threads > 0) SetComputeThreads(spec_.compute_threads);
  return run.Execute();
}

Future<Tensor> Stage::PutInput(uint64_t step, int32_t micro_batch,
                               const Tensor& input) {
  absl::StatusOr<std::shared_ptr<StepState>> state = Open(step);
  if (!state.ok()) return ReadyFuture<Tensor>(state.status());
  return (*state)->PutInput(micro_batch, input);
}

absl::Status Stage::PutTargets(uint64_t step, const Tensor& targets) {
  ASSIGN_OR_RETURN(auto state, Open(step));
  return state->PutTargets(targets);
}

void Stage::Abort(uint64_t step, const absl::Status& why) {
  std::shared_ptr<StepState> state;
  {
    MutexLock lock(mutex_);
    over_ = std::max(over_, step);
    if (state_ != nullptr && state_->step() <= step) state = std::move(state_);
  }
  if (state != nullptr) state->Fail(why);
}

}  // namespace baton::dist

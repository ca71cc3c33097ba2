// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// For a pipeline that was dropped to let go of its modules.
constexpr std::chrono::milliseconds kHandOver{5000};

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
      next_(std::move(next)) {}

Stage::~Stage() {
  MutexLock lock(mutex_);
  if (state_ != nullptr) {
    state_->Fail(Explain(absl::CancelledError("the stage was dropped")));
  }
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

void Stage::End(uint64_t step, const absl::Status& why) {
  std::shared_ptr<StepState> state;
  {
    MutexLock lock(mutex_);
    over_ = std::max(over_, step);
    if (state_ != nullptr && state_->step() <= step) state = std::move(state_);
  }
  if (state != nullptr) state->Fail(why);
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

}  // namespace baton::dist

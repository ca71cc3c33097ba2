// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/recorded_program.h"
#include "models/nn/graphed.h"

namespace baton::dist {
namespace {

// The time for a dropped pipeline to release its modules.
constexpr std::chrono::milliseconds kHandOver{5000};

// The number of different micro-batch sizes in a step: full ones and the last.
constexpr int kSizes = 2;
// A bound above the number of passes that any schedule has in progress.
constexpr int kManyPasses = 1024;

std::shared_ptr<nn::Module> Replayed(std::shared_ptr<nn::Module> module,
                                     const StageSpec& spec) {
  if (!WhyNotRecorded(*module, spec).empty()) return module;
  return std::make_shared<nn::Graphed>(
      std::move(module),
      nn::RecordingOptions{.kinds = kSizes, .passes = kManyPasses});
}

rpc::CallOptions TimeUntil(MailLinks::Deadline deadline) {
  rpc::CallOptions options;
  options.timeout = std::max(std::chrono::milliseconds(1),
                             std::chrono::ceil<std::chrono::milliseconds>(
                                 deadline - MailLinks::Deadline::clock::now()));
  return options;
}

std::shared_ptr<nn::Module> Joined(std::shared_ptr<nn::Module> module,
                                   const StageLoss* loss) {
  if (loss == nullptr) return module;
  return std::make_shared<nn::WithLoss>(std::move(module), loss->module);
}

// Delivers to a stage of this worker without a call.
Future<Values> PutHere(const RRef<Stage>& stage, uint64_t step, int source,
                       int micro_batch, const Outputs& outputs) {
  const auto here = stage.LocalValue();
  if (!here.ok()) return ReadyFuture<Values>(here.status());
  return (*here)->TakeInputs(step, source, micro_batch, outputs);
}

absl::Status CheckSpec(const StageSpec& spec,
                       const std::map<int32_t, RRef<Stage>>& behind) {
  if (spec.index < 0 || spec.index >= spec.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no stage ", spec.index, " of ", spec.count));
  }
  RETURN_IF_ERROR(CheckRoutes(spec.routes, spec.count));
  const StageWiring wiring(spec.index, spec.count, spec.routes);
  for (int target : wiring.targets()) {
    if (behind.count(target) == 0)
      return spec.Explain(absl::InvalidArgumentError(
          absl::StrCat("it is not told where stage ", target, " is")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> Stage::Make(
    const rpc::CallContext& call, std::shared_ptr<nn::Module> module,
    std::shared_ptr<rpc::ObjectLock> lock, const StageSpec& spec,
    std::map<int32_t, RRef<Stage>> behind,
    std::shared_ptr<const StageLoss> loss) {
  RETURN_IF_ERROR(CheckSpec(spec, behind));
  const std::string who =
      absl::StrCat("stage ", spec.index, " of ", spec.count,
                   " of a pipeline of worker ", call.caller().name);
  const auto end =
      std::chrono::steady_clock::now() +
      std::min<std::chrono::milliseconds>(call.remaining() / 2, kHandOver);
  auto reservation = lock->AwaitReservation(
      who, end, {.name = spec.line, .epoch = spec.epoch});
  if (!reservation.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        reservation.status().message(),
        "; a module takes part in one pipeline at a time: drop that Pipeline "
        "first, or give this one a module of its own"));
  }
  return std::unique_ptr<Stage>(new Stage(std::move(module), std::move(lock),
                                          *std::move(reservation), spec,
                                          std::move(behind), std::move(loss)));
}

Stage::Stage(std::shared_ptr<nn::Module> module,
             std::shared_ptr<rpc::ObjectLock> lock,
             std::shared_ptr<rpc::Reservation> reservation,
             const StageSpec& spec, std::map<int32_t, RRef<Stage>> behind,
             std::shared_ptr<const StageLoss> loss)
    : module_(Joined(module, loss.get())),
      replayed_(Joined(Replayed(std::move(module), spec), loss.get())),
      lock_(std::move(lock)),
      reservation_(std::move(reservation)),
      spec_(spec),
      wiring_(spec.index, spec.count, spec.routes),
      behind_(std::move(behind)),
      loss_(std::move(loss)) {}

Stage::~Stage() {
  MutexLock lock(mutex_);
  for (const auto& [step, mail] : mail_)
    mail->Fail(spec_.Explain(absl::CancelledError("the stage was dropped")));
}

std::vector<std::shared_ptr<rpc::ObjectLock>> Stage::locks() const {
  if (loss_ == nullptr) return {lock_};
  return {lock_, loss_->lock};
}

absl::StatusOr<std::shared_ptr<MailLinks>> Stage::Open(uint64_t step) {
  if (reservation_->superseded()) {
    return spec_.Explain(
        absl::AbortedError("the pipeline has been made anew since"));
  }
  MutexLock lock(mutex_);
  if (step < oldest_) {
    return spec_.Explain(
        absl::AbortedError(absl::StrCat("step ", step, " is over")));
  }
  std::shared_ptr<MailLinks>& mail = mail_[step];
  if (mail == nullptr) {
    mail = std::make_shared<MailLinks>(
        spec_, [behind = behind_, self = spec_.index, step](
                   int target, int micro_batch, const Outputs& outputs,
                   MailLinks::Deadline deadline) {
          const RRef<Stage>& stage = behind.at(target);
          if (stage.is_owner())
            return PutHere(stage, step, self, micro_batch, outputs);
          return stage.Async<&Stage::PutInputs>(TimeUntil(deadline), step, self,
                                                int32_t{micro_batch}, outputs);
        });
  }
  return mail;
}

void Stage::Begin(uint64_t step, uint64_t oldest_plan) {
  std::map<uint64_t, std::shared_ptr<MailLinks>> over;
  // Released without the lock, because that may wait for a GPU.
  std::vector<std::shared_ptr<LinkWindow>> unused;
  {
    MutexLock lock(mutex_);
    oldest_ = std::max(oldest_, step);
    while (!mail_.empty() && mail_.begin()->first < step)
      over.insert(mail_.extract(mail_.begin()));
    while (!windows_.empty() && windows_.begin()->first.first < oldest_plan)
      unused.push_back(windows_.extract(windows_.begin()).mapped());
  }
  for (const auto& [older, mail] : over)
    mail->Fail(spec_.Explain(absl::AbortedError("a newer step began")));
}

Future<Values> Stage::PutInputs(rpc::CallContext& call, uint64_t step,
                                int32_t source, int32_t micro_batch,
                                const Outputs& inputs) {
  Future<Values> gradients = TakeInputs(step, source, micro_batch, inputs);
  if (gradients.ready()) return gradients;
  if (const auto mail = Open(step); mail.ok()) {
    call.OnCancel([links = *mail, spec = spec_](const absl::Status& why) {
      links->Fail(spec.Explain(Annotate(why, "the sender gave up the step")));
    });
  }
  return gradients;
}

Future<Values> Stage::TakeInputs(uint64_t step, int32_t source,
                                 int32_t micro_batch, const Outputs& inputs) {
  if (source == kBatch || !absl::c_linear_search(wiring_.sources(), source)) {
    return ReadyFuture<Values>(spec_.Explain(absl::InvalidArgumentError(
        absl::StrCat("it takes nothing from stage ", source))));
  }
  absl::StatusOr<std::shared_ptr<MailLinks>> mail = Open(step);
  if (!mail.ok()) return ReadyFuture<Values>(mail.status());
  return (*mail)->PutInputs(source, micro_batch, inputs);
}

}  // namespace baton::dist

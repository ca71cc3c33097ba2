// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/recovery.h"
#include "rpc/call_options.h"

// Steps while no worker is lost, and when their states are kept.
namespace baton::dist {
namespace {

template <class T>
bool HasSucceeded(const Future<T>& future) {
  return future.ready() && future.Await().ok();
}

}  // namespace

// Keeps a new state only if the previous one is safe at all workers, because
// each worker then drops the one before that.
int64_t RecoverablePipeline::NumberToKeep(int64_t number) {
  if (!safe_.has_value() || !HasSucceeded(*safe_)) return 0;
  // The journal records only the last of repeated steps, so the states of the
  // others are not kept.
  if (journal_.has_value() && number != batches_.back().number) return 0;
  safe_.reset();
  last_safe_ = kept_;
  return kept_ = number;
}

Future<Pipeline::StepResult> RecoverablePipeline::Run(const Batch& batch) {
  return pipeline_->StepAsync({.hosts = hosts_,
                               .request = batch.request,
                               .number = NumberToKeep(batch.number)},
                              batch.inputs, batch.targets);
}

Future<void> RecoverablePipeline::Safe(int64_t number) const {
  const rpc::CallOptions options{.timeout = recovery_.timeout};
  std::vector<Future<void>> safe;
  for (const RRef<StateKeeper>& keeper : keepers_)
    safe.push_back(keeper.Async<&StateKeeper::Safe>(options, number));
  return WaitAll(safe);
}

// Reports a failed copy as the loss of a worker, which steps may not have
// noticed yet.
absl::Status RecoverablePipeline::AwaitSafe() {
  const auto most = static_cast<size_t>(recovery_.most_redone);
  if (!safe_.has_value() || (!safe_->ready() && batches_.size() < most))
    return absl::OkStatus();
  const absl::Status safe = safe_->Await(kNoLimit);
  if (!safe.ok()) {
    return Recover(absl::IsPermissionDenied(safe)
                       ? safe
                       : absl::UnavailableError(safe.message()),
                   nullptr);
  }
  while (!batches_.empty() && batches_.front().number <= kept_)
    batches_.pop_front();
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::BeginStep(const BatchInputs& inputs,
                                            const Tensor& targets) {
  RETURN_IF_ERROR(status_);
  if (under_way_.size() >= most_under_way()) {
    return absl::FailedPreconditionError(
        absl::StrCat("steps under way: ", under_way_.size(),
                     "; await the first one's result"));
  }
  absl::Status begun = AwaitSafe();
  const int64_t last = next_ - 1 + static_cast<int64_t>(under_way_.size());
  if (begun.ok()) begun = NoteStep(last);
  if (!begun.ok()) {
    if (absl::IsPermissionDenied(begun)) status_ = begun;
    GiveUpSteps();
    return begun;
  }
  batches_.push_back({last + 1, inputs, targets, optimizer_.next_step()});
  // If the step before has failed, this one must not run.
  const bool broken = !under_way_.empty() && under_way_.back().ready() &&
                      !under_way_.back().Await().ok();
  under_way_.push_back(broken ? under_way_.back() : Run(batches_.back()));
  return absl::OkStatus();
}

absl::StatusOr<Pipeline::StepResult> RecoverablePipeline::AwaitStep() {
  RETURN_IF_ERROR(status_);
  if (under_way_.empty())
    return absl::FailedPreconditionError("no step is under way");
  auto result = under_way_.front().Await(kNoLimit);
  if (!result.ok()) {
    const absl::Status status = Recover(result.status(), nullptr);
    if (!status.ok()) {
      GiveUpSteps();
      return status;
    }
    result = under_way_.front().Await(kNoLimit);
  }
  under_way_.pop_front();
  if (next_ == kept_ && !safe_.has_value()) safe_ = Safe(kept_);
  ++next_;
  ++steps_;
  members_.news().Forget();
  return result;
}

void RecoverablePipeline::GiveUpSteps() {
  under_way_.clear();
  while (!batches_.empty() && batches_.back().number >= next_)
    batches_.pop_back();
}

int64_t RecoverablePipeline::LastDone() const {
  int64_t last = next_ - 1;
  for (const auto& step : under_way_) {
    if (!HasSucceeded(step)) break;
    ++last;
  }
  return last;
}

absl::Status RecoverablePipeline::NoneUnderWay() const {
  RETURN_IF_ERROR(status_);
  if (under_way_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("steps under way: ", under_way_.size(), "; await them"));
}

absl::StatusOr<Pipeline::StepResult> RecoverablePipeline::Step(
    const BatchInputs& inputs, const Tensor& targets) {
  RETURN_IF_ERROR(NoneUnderWay());
  RETURN_IF_ERROR(BeginStep(inputs, targets));
  return AwaitStep();
}

absl::StatusOr<Pipeline::EvalResult> RecoverablePipeline::Evaluate(
    const BatchInputs& inputs, const Tensor& targets) {
  RETURN_IF_ERROR(NoneUnderWay());
  auto result = pipeline_->Evaluate(inputs, targets);
  if (result.ok()) return result;
  RETURN_IF_ERROR(Recover(result.status(), [&] {
    result = pipeline_->Evaluate(inputs, targets);
    return result.status();
  }));
  return result;
}

}  // namespace baton::dist

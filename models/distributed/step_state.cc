// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_state.h"

#include "absl/strings/str_cat.h"

namespace baton::dist {

Future<Tensor> StepState::PutInput(int micro_batch, Tensor input) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return ReadyFuture<Tensor>(failed_);
  auto [answer, is_new] = answers_.try_emplace(micro_batch);
  if (!is_new) {
    return ReadyFuture<Tensor>(absl::InvalidArgumentError(
        absl::StrCat("the input of micro-batch ", micro_batch, " came twice")));
  }
  inputs_.emplace(micro_batch, std::move(input));
  arrived_.NotifyAll();
  return answer->second.future();
}

void StepState::PutGradient(int micro_batch, Tensor gradient) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return;
  gradients_.emplace(micro_batch, std::move(gradient));
  arrived_.NotifyAll();
}

void StepState::Fail(const absl::Status& why) {
  std::map<int, Promise<Tensor>> answers;
  Box inputs, gradients;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    failed_ = why;
    answers.swap(answers_);
    inputs.swap(inputs_);
    gradients.swap(gradients_);
    arrived_.NotifyAll();
  }
  for (auto& [micro_batch, answer] : answers) answer.Set(why);
}

absl::Status StepState::ended() const {
  MutexLock lock(mutex_);
  return failed_;
}

absl::StatusOr<Tensor> StepState::TakeFrom(Box StepState::*box, int micro_batch,
                                           const char* what,
                                           Deadline deadline) {
  MutexLock lock(mutex_);
  Box& mail = this->*box;
  for (;;) {
    if (!failed_.ok()) return failed_;
    if (auto found = mail.find(micro_batch); found != mail.end()) {
      return std::move(mail.extract(found).mapped());
    }
    const auto before = std::chrono::steady_clock::now();
    const bool notified = arrived_.WaitUntil(mutex_, deadline);
    const auto now = std::chrono::steady_clock::now();
    waited_ += now - before;
    if (!notified && now >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the ", what, " of micro-batch ", micro_batch, " did not come"));
    }
  }
}

absl::StatusOr<Tensor> StepState::TakeInput(int micro_batch,
                                            Deadline deadline) {
  return TakeFrom(&StepState::inputs_, micro_batch, "input", deadline);
}

absl::StatusOr<Tensor> StepState::TakeGradient(int micro_batch,
                                               Deadline deadline) {
  return TakeFrom(&StepState::gradients_, micro_batch, "gradient", deadline);
}

std::chrono::steady_clock::duration StepState::waited() const {
  MutexLock lock(mutex_);
  return waited_;
}

void StepState::Answer(int micro_batch, Tensor gradient) {
  std::map<int, Promise<Tensor>>::node_type answer;
  {
    MutexLock lock(mutex_);
    answer = answers_.extract(micro_batch);
  }
  if (!answer.empty()) answer.mapped().Set(std::move(gradient));
}

}  // namespace baton::dist

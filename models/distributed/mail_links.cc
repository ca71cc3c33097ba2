// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/mail_links.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

Future<Tensor> MailLinks::PutInput(int micro_batch, Tensor input) {
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

void MailLinks::PutGradient(int micro_batch, Tensor gradient) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return;
  gradients_.emplace(micro_batch, std::move(gradient));
  arrived_.NotifyAll();
}

void MailLinks::Fail(const absl::Status& why) {
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

absl::Status MailLinks::ended() const {
  MutexLock lock(mutex_);
  return failed_;
}

absl::StatusOr<Tensor> MailLinks::TakeFrom(Box MailLinks::*box, int micro_batch,
                                           const char* what) {
  MutexLock lock(mutex_);
  Box& mail = this->*box;
  for (;;) {
    if (!failed_.ok()) return failed_;
    if (auto found = mail.find(micro_batch); found != mail.end()) {
      return std::move(mail.extract(found).mapped());
    }
    if (!arrived_.WaitUntil(mutex_, deadline_) &&
        Deadline::clock::now() >= deadline_) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the ", what, " of micro-batch ", micro_batch, " did not come"));
    }
  }
}

absl::StatusOr<Tensor> MailLinks::TakeInput(int micro_batch) {
  return TakeFrom(&MailLinks::inputs_, micro_batch, "input");
}

absl::StatusOr<Tensor> MailLinks::TakeGradient(int micro_batch) {
  return TakeFrom(&MailLinks::gradients_, micro_batch, "gradient");
}

void MailLinks::SendOutput(int micro_batch, const Tensor& output) {
  Deadline deadline;
  {
    MutexLock lock(mutex_);
    deadline = deadline_;
  }
  deliver_(micro_batch, output, deadline)
      .OnReady([self = shared_from_this(),
                micro_batch](const absl::StatusOr<Tensor>& gradient) {
        if (gradient.ok()) {
          self->PutGradient(micro_batch, *gradient);
          return;
        }
        self->Fail(self->spec_.Explain(Annotate(
            gradient.status(),
            absl::StrCat("micro-batch ", micro_batch, " at the next stage"))));
      });
}

void MailLinks::SendGradient(int micro_batch, Tensor gradient) {
  std::map<int, Promise<Tensor>>::node_type answer;
  {
    MutexLock lock(mutex_);
    answer = answers_.extract(micro_batch);
  }
  if (!answer.empty()) answer.mapped().Set(std::move(gradient));
}

void MailLinks::set_deadline(Deadline deadline) {
  MutexLock lock(mutex_);
  deadline_ = deadline;
}

}  // namespace baton::dist

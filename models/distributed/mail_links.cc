// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/mail_links.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

Future<Values> MailLinks::PutInputs(int source, int micro_batch,
                                    Values inputs) {
  const Key key(source, micro_batch);
  MutexLock lock(mutex_);
  if (!failed_.ok()) return ReadyFuture<Values>(failed_);
  auto [answer, is_new] = answers_.try_emplace(key);
  if (!is_new) {
    return ReadyFuture<Values>(absl::InvalidArgumentError(
        absl::StrCat("the input of micro-batch ", micro_batch, " from stage ",
                     source, " came twice")));
  }
  inputs_.emplace(key, std::move(inputs));
  arrived_.NotifyAll();
  return answer->second.future();
}

void MailLinks::PutGradients(Key key, Values gradients) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return;
  gradients_.emplace(key, std::move(gradients));
  arrived_.NotifyAll();
}

void MailLinks::Fail(const absl::Status& why) {
  std::map<Key, Promise<Values>> answers;
  Box inputs, gradients;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    failed_ = why;
    answers.swap(answers_);
    inputs.swap(inputs_);
    gradients.swap(gradients_);
    for (const auto& [stage, window] : windows_) window->GiveUp(step_);
    arrived_.NotifyAll();
  }
  for (auto& [key, answer] : answers) answer.Set(why);
}

absl::Status MailLinks::ended() const {
  MutexLock lock(mutex_);
  return failed_;
}

absl::StatusOr<Values> MailLinks::TakeFrom(Box MailLinks::*box, Key key,
                                           const char* what) {
  MutexLock lock(mutex_);
  Box& mail = this->*box;
  for (;;) {
    if (!failed_.ok()) return failed_;
    if (auto found = mail.find(key); found != mail.end()) {
      return std::move(mail.extract(found).mapped());
    }
    if (!arrived_.WaitUntil(mutex_, deadline_) &&
        Deadline::clock::now() >= deadline_) {
      return absl::DeadlineExceededError(
          absl::StrCat("the ", what, " of micro-batch ", key.second,
                       " from stage ", key.first, " did not come"));
    }
  }
}

LinkWindow* MailLinks::WindowTo(int stage) const {
  MutexLock lock(mutex_);
  const auto found = windows_.find(stage);
  return found == windows_.end() ? nullptr : found->second.get();
}

absl::StatusOr<Values> MailLinks::TakeThrough(LinkWindow& window, Key key,
                                              const char* what) {
  Deadline deadline;
  {
    MutexLock lock(mutex_);
    deadline = deadline_;
  }
  auto values = window.Take(key.second, deadline);
  if (values.ok()) return values;
  RETURN_IF_ERROR(ended());
  return Annotate(values.status(),
                  absl::StrCat("the ", what, " of micro-batch ", key.second,
                               " from stage ", key.first));
}

void MailLinks::SendThrough(LinkWindow& window, int micro_batch,
                            const Values& values) {
  const absl::Status sent = window.Send(micro_batch, values);
  if (!sent.ok()) Fail(spec_.Explain(sent));
}

absl::StatusOr<Values> MailLinks::TakeInputs(int source, int micro_batch) {
  constexpr char kWhat[] = "input";
  if (LinkWindow* window = WindowTo(source))
    return TakeThrough(*window, {source, micro_batch}, kWhat);
  return TakeFrom(&MailLinks::inputs_, {source, micro_batch}, kWhat);
}

absl::StatusOr<Values> MailLinks::TakeGradients(int target, int micro_batch) {
  constexpr char kWhat[] = "gradient";
  if (LinkWindow* window = WindowTo(target))
    return TakeThrough(*window, {target, micro_batch}, kWhat);
  ASSIGN_OR_RETURN(Values gradients, TakeFrom(&MailLinks::gradients_,
                                              {target, micro_batch}, kWhat));
  passed_[target].gradients[micro_batch] = SpecOf(gradients);
  return gradients;
}

void MailLinks::SendOutputs(int target, int micro_batch, const Values& values) {
  if (LinkWindow* window = WindowTo(target))
    return SendThrough(*window, micro_batch, values);
  passed_[target].outputs[micro_batch] = SpecOf(values);
  Deadline deadline;
  {
    MutexLock lock(mutex_);
    deadline = deadline_;
  }
  deliver_(target, micro_batch, values, deadline)
      .OnReady([self = shared_from_this(), target,
                micro_batch](const absl::StatusOr<Values>& gradients) {
        if (gradients.ok()) {
          self->PutGradients({target, micro_batch}, *gradients);
          return;
        }
        self->Fail(self->spec_.Explain(Annotate(
            gradients.status(),
            absl::StrCat("micro-batch ", micro_batch, " at stage ", target))));
      });
}

void MailLinks::SendGradients(int source, int micro_batch, Values gradients) {
  if (LinkWindow* window = WindowTo(source))
    return SendThrough(*window, micro_batch, gradients);
  std::map<Key, Promise<Values>>::node_type answer;
  {
    MutexLock lock(mutex_);
    answer = answers_.extract({source, micro_batch});
  }
  if (!answer.empty()) answer.mapped().Set(std::move(gradients));
}

void MailLinks::Begin(uint64_t step, Deadline deadline, WindowMap windows) {
  for (const auto& [stage, window] : windows) window->Begin(step);
  MutexLock lock(mutex_);
  step_ = step;
  deadline_ = deadline;
  windows_ = std::move(windows);
  if (failed_.ok()) return;
  for (const auto& [stage, window] : windows_) window->GiveUp(step);
}

void MailLinks::Drain() {
  WindowMap windows;
  {
    MutexLock lock(mutex_);
    windows = windows_;
  }
  for (const auto& [stage, window] : windows) window->Drain();
  MutexLock lock(mutex_);
  windows_.clear();
}

}  // namespace baton::dist

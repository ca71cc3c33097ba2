// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/mail_links.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

Future<Values> MailLinks::PutInputs(int source, int micro_batch,
                                    Outputs inputs) {
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

void MailLinks::OnAnswer(Key key, const absl::StatusOr<Values>& gradients) {
  if (!gradients.ok()) {
    Fail(spec_.Explain(Annotate(
        gradients.status(),
        absl::StrCat("micro-batch ", key.second, " at stage ", key.first))));
    return;
  }
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    gradients_.emplace(key, *gradients);
    arrived_.NotifyAll();
    if (--under_way_ > 0 || !all_sent_) return;
  }
  delivered_.Set(absl::OkStatus());
}

void MailLinks::EndDeliveries() {
  {
    MutexLock lock(mutex_);
    all_sent_ = true;
    if (under_way_ > 0) return;
  }
  delivered_.Set(absl::OkStatus());
}

void MailLinks::Fail(const absl::Status& why) {
  std::map<Key, Promise<Values>> answers;
  Box<Outputs> inputs;
  Box<Values> gradients;
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
  delivered_.Set(why);
}

absl::Status MailLinks::ended() const {
  MutexLock lock(mutex_);
  return failed_;
}

template <typename T>
absl::StatusOr<T> MailLinks::TakeFrom(Box<T> MailLinks::*box, Key key,
                                      const char* what) {
  MutexLock lock(mutex_);
  Box<T>& mail = this->*box;
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

absl::StatusOr<Outputs> MailLinks::TakeThrough(LinkWindow& window, Key key,
                                               const char* what) {
  Deadline deadline;
  {
    MutexLock lock(mutex_);
    deadline = deadline_;
  }
  auto outputs = window.Take(key.second, deadline);
  if (outputs.ok()) return outputs;
  RETURN_IF_ERROR(ended());
  return Annotate(outputs.status(),
                  absl::StrCat("the ", what, " of micro-batch ", key.second,
                               " from stage ", key.first));
}

void MailLinks::SendThrough(LinkWindow& window, int micro_batch,
                            const Outputs& outputs) {
  const absl::Status sent = window.Send(micro_batch, outputs);
  if (!sent.ok()) Fail(spec_.Explain(sent));
}

absl::StatusOr<Outputs> MailLinks::TakeInputs(int source, int micro_batch) {
  constexpr char kWhat[] = "input";
  if (LinkWindow* window = WindowTo(source))
    return TakeThrough(*window, {source, micro_batch}, kWhat);
  return TakeFrom(&MailLinks::inputs_, {source, micro_batch}, kWhat);
}

absl::StatusOr<Values> MailLinks::TakeGradients(int target, int micro_batch) {
  constexpr char kWhat[] = "gradient";
  if (LinkWindow* window = WindowTo(target)) {
    ASSIGN_OR_RETURN(Outputs back,
                     TakeThrough(*window, {target, micro_batch}, kWhat));
    return std::move(back.values);
  }
  ASSIGN_OR_RETURN(Values gradients, TakeFrom(&MailLinks::gradients_,
                                              {target, micro_batch}, kWhat));
  passed_[target].gradients[micro_batch] = SpecOf({gradients, {}});
  return gradients;
}

void MailLinks::SendOutputs(int target, int micro_batch,
                            const Outputs& outputs) {
  if (LinkWindow* window = WindowTo(target))
    return SendThrough(*window, micro_batch, outputs);
  passed_[target].outputs[micro_batch] = SpecOf(outputs);
  Deadline deadline;
  {
    MutexLock lock(mutex_);
    deadline = deadline_;
    ++under_way_;
  }
  deliver_(target, micro_batch, outputs, deadline)
      .OnReady([self = shared_from_this(), key = Key(target, micro_batch)](
                   const absl::StatusOr<Values>& gradients) {
        self->OnAnswer(key, gradients);
      });
}

void MailLinks::SendGradients(int source, int micro_batch, Values gradients) {
  if (LinkWindow* window = WindowTo(source))
    return SendThrough(*window, micro_batch, {std::move(gradients), {}});
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

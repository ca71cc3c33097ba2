// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/deliveries.h"

#include <utility>

namespace baton::rpc {

void Deliveries::Push(const WorkerInfo& from, Message message, size_t bytes) {
  message.receipt = Receipt(bytes + kMessageOverhead);
  Push({from, std::move(message), bytes + kMessageOverhead});
}

void Deliveries::PushLost(const WorkerInfo& peer, absl::Status why) {
  Push({peer, std::move(why), 0});
}

void Deliveries::PushTask(Task task) { Push({{}, std::move(task), 0}); }

void Deliveries::Push(Delivery delivery) {
  MutexLock lock(mutex_);
  bytes_ += delivery.bytes;
  if (bytes_ > limit_) full_ = true;
  queue_.push_back(std::move(delivery));
}

std::shared_ptr<void> Deliveries::Receipt(size_t bytes) {
  return {nullptr, [weak = weak_from_this(), bytes](void*) {
            if (auto self = weak.lock()) self->Release(bytes);
          }};
}

void Deliveries::Release(size_t bytes) {
  {
    MutexLock lock(mutex_);
    bytes_ -= bytes;
    if (!full_ || bytes_ > limit_ / 2) return;
    full_ = false;
  }
  drained_();
}

void Deliveries::Post() {
  {
    MutexLock lock(mutex_);
    if (running_ || queue_.empty()) return;
    running_ = true;
  }
  if (std::shared_ptr<ThreadPool> executor = executor_.lock()) {
    executor->Post(
        [self = shared_from_this()] { self->Run(self->Take(false)); });
  }
}

void Deliveries::RunHere() { Run(Take(true)); }

std::optional<Deliveries::Delivery> Deliveries::Take(bool claims) {
  MutexLock lock(mutex_);
  if (claims && running_) return std::nullopt;
  running_ = !queue_.empty();
  if (!running_) return std::nullopt;
  std::optional<Delivery> next = std::move(queue_.front());
  queue_.pop_front();
  return next;
}

void Deliveries::Run(std::optional<Delivery> next) {
  for (; next.has_value(); next = Take(false)) Pass(*std::move(next));
}

void Deliveries::Pass(Delivery delivery) {
  if (auto* task = std::get_if<Task>(&delivery.what)) {
    (*task)();
    return;
  }
  gate_->Pass([&delivery](MessageHandler& handler) {
    if (auto* message = std::get_if<Message>(&delivery.what)) {
      handler.OnMessage(delivery.from, std::move(*message));
    } else {
      handler.OnPeerLost(delivery.from, std::get<absl::Status>(delivery.what));
    }
  });
}

}  // namespace baton::rpc

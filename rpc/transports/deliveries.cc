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
  if ((bytes_ += delivery.bytes) > limit_) full_ = true;
  queue_.push_back(std::move(delivery));
  ++waiting_;
}

std::shared_ptr<void> Deliveries::Receipt(size_t bytes) {
  return {nullptr, [weak = weak_from_this(), bytes](void*) {
            if (auto self = weak.lock()) self->Release(bytes);
          }};
}

// A push that exceeds the limit meanwhile may not be seen here; the receipt
// that it has made is dropped later and sees it.
void Deliveries::Release(size_t bytes) {
  bytes_ -= bytes;
  if (!full_) return;
  {
    MutexLock lock(mutex_);
    if (!full_ || bytes_ > limit_ / 2) return;
    full_ = false;
  }
  drained_();
}

void Deliveries::Post() {
  if (!Claim()) return;
  if (std::shared_ptr<ThreadPool> executor = executor_.lock()) {
    executor->Post([self = shared_from_this()] { self->Run(); });
  }
}

void Deliveries::RunHere() {
  if (Claim()) Run();
}

bool Deliveries::Claim() { return waiting_ > 0 && !running_.exchange(true); }

void Deliveries::Run() {
  do {
    while (waiting_ > 0) Pass(Take());
    running_ = false;
    // Whoever pushed before that left the delivery to this thread.
  } while (Claim());
}

Deliveries::Delivery Deliveries::Take() {
  MutexLock lock(mutex_);
  Delivery next = std::move(queue_.front());
  queue_.pop_front();
  --waiting_;
  return next;
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

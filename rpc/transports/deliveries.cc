// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/deliveries.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {

absl::Status RestoreHeader(Message& message) {
  const Tensor header = std::move(message.tensors.back());
  message.tensors.pop_back();
  return CatchErrors([&] {
    message.header.assign(static_cast<const char*>(header.raw_data()),
                          header.nbytes());
  });
}

void Deliveries::Push(const WorkerInfo& from, Message message, size_t bytes,
                      Failed restore_failed) {
  message.receipt = Receipt(bytes + kMessageOverhead);
  Push({from, std::move(message), bytes + kMessageOverhead,
        std::move(restore_failed)});
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
  if (delivery.restore_failed != nullptr) {
    const absl::Status status = RestoreHeader(std::get<Message>(delivery.what));
    if (!status.ok()) {
      delivery.restore_failed(status);
      return;
    }
  }
  gate_->Pass([&delivery](MessageHandler& handler) {
    if (auto* message = std::get_if<Message>(&delivery.what)) {
      handler.OnMessage(delivery.from, std::move(*message));
    } else {
      handler.OnPeerLost(delivery.from, std::get<absl::Status>(delivery.what));
    }
  });
}

namespace {

// For small messages, which are always read: twice as many as a channel may owe
// tensors, of 64 kB each.
constexpr size_t kSmallOnes = size_t{128} << 20;

size_t SumOrMost(size_t a, size_t b) {
  const size_t most = std::numeric_limits<size_t>::max();
  return a > most - b ? most : a + b;
}

}  // namespace

PendingMessages::PendingMessages(std::shared_ptr<Deliveries> deliveries,
                                 size_t limit, size_t message_limit,
                                 std::function<void()> drained,
                                 Deliveries::Failed failed)
    : deliveries_(std::move(deliveries)),
      limit_(limit),
      most_(SumOrMost(SumOrMost(limit, message_limit), kSmallOnes)),
      drained_(std::move(drained)),
      failed_(std::move(failed)) {}

absl::Status PendingMessages::Hold(const WorkerInfo& from,
                                   PendingMessage late) {
  const std::vector<Future<void>> awaited = std::move(late.awaited);
  late.bytes_here += kMessageOverhead;
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    if (late.bytes_here > most_ - bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(bytes_ + late.bytes_here,
                       " bytes of messages whose tensors do not ", "come"));
    }
    id = next_++;
    bytes_ += late.bytes_here;
    if (!late.small) large_bytes_ += late.bytes_here;
    if (large_bytes_ > limit_) full_ = true;
    held_[id] = {from, std::move(late), awaited.size()};
  }
  for (const Future<void>& future : awaited) {
    future.OnReady([weak = weak_from_this(), id](const absl::Status& status) {
      if (const auto self = weak.lock()) self->Came(id, status);
    });
  }
  return absl::OkStatus();
}

void PendingMessages::Came(uint64_t id, const absl::Status& status) {
  Held held;  // destroyed after the lock
  MutexLock lock(mutex_);
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  if (status.ok() && --found->second.missing > 0) return;
  held = std::move(found->second);
  held_.erase(found);
  bytes_ -= held.late.bytes_here;
  if (!held.late.small) large_bytes_ -= held.late.bytes_here;
  // Under the lock, so that nothing is delivered after Drop.
  PendingMessage& late = held.late;
  if (!status.ok()) {
    deliveries_->PushTask(
        [failed = UnlessDroppedLocked(), status] { failed(status); });
  } else if (late.header_is_last_tensor) {
    deliveries_->PushWithoutHeader(held.from, std::move(late.message),
                                   late.bytes, UnlessDroppedLocked());
  } else {
    deliveries_->Push(held.from, std::move(late.message), late.bytes);
  }
  if (full_ && large_bytes_ <= limit_ / 2) {
    full_ = false;
    deliveries_->PushTask([drained = drained_] { drained(); });
  }
  if (held_.empty()) {
    for (Task& then : std::exchange(when_none_, {}))
      deliveries_->PushTask(std::move(then));
  }
  deliveries_->Post();
}

void PendingMessages::Drop() {
  HeldById dropped;  // destroyed after the lock
  std::vector<Task> tasks;
  MutexLock lock(mutex_);
  dropped.swap(held_);
  tasks.swap(when_none_);
  bytes_ = large_bytes_ = 0;
  full_ = false;
  ++drops_;
}

PendingMessages::Failed PendingMessages::UnlessDroppedLocked() {
  return [weak = weak_from_this(), drops = drops_](const absl::Status& why) {
    const auto self = weak.lock();
    if (self != nullptr && self->drops() == drops) self->failed_(why);
  };
}

uint64_t PendingMessages::drops() const {
  MutexLock lock(mutex_);
  return drops_;
}

bool PendingMessages::WhenNone(Task then) {
  MutexLock lock(mutex_);
  if (held_.empty()) return false;
  when_none_.push_back(std::move(then));
  return true;
}

bool PendingMessages::has_room() const {
  MutexLock lock(mutex_);
  return !full_;
}

}  // namespace baton::rpc

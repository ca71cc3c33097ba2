// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/message_queues.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

// More chunks than any queue has slots, and few enough to bound the memory.
constexpr size_t kMostWaiting = 64;

}  // namespace

class MessageQueues::MessageReceiver final : public SlotReceiver {
 public:
  MessageReceiver(std::shared_ptr<MessageQueues> queues, uint64_t from)
      : queues_(std::move(queues)), from_(from) {}

  absl::StatusOr<Chunk> Front() override {
    if (!front_.has_value()) {
      MutexLock lock(queues_->mutex_);
      const auto found = queues_->queues_[from_].extract(next_);
      if (found.empty()) return Chunk{};
      front_ = std::move(found.mapped());
    }
    const Tensor& data = front_->message.data;
    return Chunk{front_->message.tag, data.nbytes(),
                 static_cast<const std::byte*>(data.raw_data())};
  }
  void Pop() override {
    ++next_;
    const Promise<void> taken = front_->taken;
    front_.reset();
    taken.Set(absl::OkStatus());
  }

 private:
  const std::shared_ptr<MessageQueues> queues_;
  const uint64_t from_;
  uint64_t next_ = 0;
  std::optional<Waiting> front_;
};

class MessageQueues::MessageSender final : public SlotSender {
 public:
  MessageSender(Sender sender, SlotQueueSize size,
                std::shared_ptr<FutexEvent> wakeup)
      : sender_(std::move(sender)), size_(size), wakeup_(std::move(wakeup)) {}

  absl::StatusOr<std::byte*> Slot() override {
    if (!slot_.defined()) {
      MutexLock lock(room_->mutex);
      if (!room_->failure.ok()) return room_->failure;
      if (room_->out == size_.slots) return nullptr;
      ++room_->out;
      slot_ = sender_.make(size_.slot_bytes);
    }
    return static_cast<std::byte*>(slot_.raw_data());
  }
  void Push(uint64_t tag, size_t bytes) override {
    Tensor data = std::move(slot_);
    slot_ = Tensor();
    if (bytes != size_.slot_bytes)
      data = data.Slice(0, 0, static_cast<int64_t>(bytes));
    sender_.send({sender_.ticket, next_++, tag, std::move(data)})
        .OnReady([room = room_, wakeup = wakeup_](const absl::Status& taken) {
          {
            MutexLock lock(room->mutex);
            --room->out;
            if (room->failure.ok()) room->failure = taken;
          }
          wakeup->Wake();
        });
  }

 private:
  struct Room {
    Mutex mutex;
    int out ABSL_GUARDED_BY(mutex) = 0;
    absl::Status failure ABSL_GUARDED_BY(mutex);
  };

  const Sender sender_;
  const SlotQueueSize size_;
  const std::shared_ptr<FutexEvent> wakeup_;
  const std::shared_ptr<Room> room_ = std::make_shared<Room>();
  Tensor slot_;
  uint64_t next_ = 0;
};

Future<void> MessageQueues::Deliver(ChunkMessage message) {
  if (!message.data.defined() || message.data.dtype() != DType::kU8 ||
      !message.data.IsContiguous() || message.data.device().is_cuda())
    return ReadyFuture<void>(absl::InvalidArgumentError("no chunk of a queue"));
  Future<void> taken;
  {
    MutexLock lock(mutex_);
    Queue& queue = queues_[message.from];
    if (queue.size() >= kMostWaiting) {
      return ReadyFuture<void>(absl::ResourceExhaustedError(
          absl::StrCat(queue.size(), " chunks of a queue wait already")));
    }
    const uint64_t number = message.number;
    Waiting waiting{std::move(message), Promise<void>()};
    taken = waiting.taken.future();
    queue.emplace(number, std::move(waiting));
  }
  wakeup_->Wake();
  return taken;
}

std::unique_ptr<SlotReceiver> MessageQueues::In(uint64_t from) {
  return std::make_unique<MessageReceiver>(shared_from_this(), from);
}

std::unique_ptr<SlotSender> MessageQueues::Out(
    Sender sender, SlotQueueSize size, std::shared_ptr<FutexEvent> wakeup) {
  return std::make_unique<MessageSender>(std::move(sender), size,
                                         std::move(wakeup));
}

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/message_lanes.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

// More than any lane has slots, less than would hurt.
constexpr size_t kMostWaiting = 64;

}  // namespace

class MessageLanes::MessageInlet final : public Inlet {
 public:
  MessageInlet(std::shared_ptr<MessageLanes> lanes, uint64_t from)
      : lanes_(std::move(lanes)), from_(from) {}

  absl::StatusOr<Chunk> Front() override {
    if (!front_.has_value()) {
      MutexLock lock(lanes_->mutex_);
      const auto found = lanes_->queues_[from_].extract(next_);
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
  const std::shared_ptr<MessageLanes> lanes_;
  const uint64_t from_;
  uint64_t next_ = 0;
  std::optional<Waiting> front_;
};

class MessageLanes::MessageOutlet final : public Outlet {
 public:
  MessageOutlet(Sender sender, LaneSize size, std::shared_ptr<Doorbell> bell)
      : sender_(std::move(sender)), size_(size), bell_(std::move(bell)) {}

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
        .OnReady([room = room_, bell = bell_](const absl::Status& taken) {
          {
            MutexLock lock(room->mutex);
            --room->out;
            if (room->failure.ok()) room->failure = taken;
          }
          bell->Ring();
        });
  }

 private:
  struct Room {
    Mutex mutex;
    int out ABSL_GUARDED_BY(mutex) = 0;
    absl::Status failure ABSL_GUARDED_BY(mutex);
  };

  const Sender sender_;
  const LaneSize size_;
  const std::shared_ptr<Doorbell> bell_;
  const std::shared_ptr<Room> room_ = std::make_shared<Room>();
  Tensor slot_;
  uint64_t next_ = 0;
};

Future<void> MessageLanes::Deliver(ChunkMessage message) {
  if (!message.data.defined() || message.data.dtype() != DType::kU8 ||
      !message.data.IsContiguous() || message.data.device().is_cuda())
    return ReadyFuture<void>(absl::InvalidArgumentError("no chunk of a lane"));
  Future<void> taken;
  {
    MutexLock lock(mutex_);
    Queue& queue = queues_[message.from];
    if (queue.size() >= kMostWaiting) {
      return ReadyFuture<void>(absl::ResourceExhaustedError(
          absl::StrCat(queue.size(), " chunks of a lane wait already")));
    }
    const uint64_t number = message.number;
    Waiting waiting{std::move(message), Promise<void>()};
    taken = waiting.taken.future();
    queue.emplace(number, std::move(waiting));
  }
  bell_->Ring();
  return taken;
}

std::unique_ptr<Inlet> MessageLanes::In(uint64_t from) {
  return std::make_unique<MessageInlet>(shared_from_this(), from);
}

std::unique_ptr<Outlet> MessageLanes::Out(Sender sender, LaneSize size,
                                          std::shared_ptr<Doorbell> bell) {
  return std::make_unique<MessageOutlet>(std::move(sender), size,
                                         std::move(bell));
}

}  // namespace baton::rpc

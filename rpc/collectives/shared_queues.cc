// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/shared_queues.h"

#include <unistd.h>

#include <atomic>
#include <new>
#include <utility>

#include "core/status.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {
namespace {

constexpr size_t kLine = 64;

// The numbers of chunks so far. Each is written by one side only and has a
// cache line of its own.
struct Positions {
  alignas(kLine) std::atomic<uint64_t> pushed;
  alignas(kLine) std::atomic<uint64_t> popped;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct alignas(kLine) SlotHead {
  uint64_t tag;
  uint64_t bytes;
};

size_t QueueBytes(SlotQueueSize size) {
  return sizeof(Positions) +
         static_cast<size_t>(size.slots) * (sizeof(SlotHead) + size.slot_bytes);
}

}  // namespace

// One queue, as both ends see it.
class SharedQueues::SlotQueue {
 public:
  SlotQueue(const SharedQueues& queues, int seat)
      : size_(queues.size_),
        data_(queues.memory_.data() +
              static_cast<size_t>(seat) * QueueBytes(queues.size_)) {}

  Positions& positions() const {
    return *std::launder(reinterpret_cast<Positions*>(data_));
  }
  SlotHead& head(uint64_t chunk) const {
    return *std::launder(reinterpret_cast<SlotHead*>(
        data_ + sizeof(Positions) + SlotOf(chunk) * sizeof(SlotHead)));
  }
  std::byte* slot(uint64_t chunk) const {
    return data_ + sizeof(Positions) + slots() * sizeof(SlotHead) +
           SlotOf(chunk) * size_.slot_bytes;
  }
  size_t slots() const { return static_cast<size_t>(size_.slots); }
  size_t slot_bytes() const { return size_.slot_bytes; }

 private:
  size_t SlotOf(uint64_t chunk) const { return chunk % slots(); }

  const SlotQueueSize size_;
  std::byte* const data_;
};

class SharedQueues::SharedReceiver final : public SlotReceiver {
 public:
  SharedReceiver(std::shared_ptr<SharedQueues> queues, int seat,
                 std::shared_ptr<FutexEvent> wakeup)
      : queues_(std::move(queues)),
        queue_(*queues_, seat),
        wakeup_(std::move(wakeup)) {}

  absl::StatusOr<Chunk> Front() override {
    const uint64_t pushed = queue_.positions().pushed.load();
    if (pushed == popped_) return Chunk{};
    // The head is copied, so that the sender cannot change it after the check.
    const SlotHead head = queue_.head(popped_);
    if (pushed - popped_ > queue_.slots() || head.bytes > queue_.slot_bytes())
      return absl::DataLossError("a shared queue is not as its sender left it");
    return Chunk{head.tag, head.bytes, queue_.slot(popped_)};
  }
  void Pop() override {
    queue_.positions().popped.store(++popped_);
    wakeup_->Wake();
  }

 private:
  const std::shared_ptr<SharedQueues> queues_;
  const SlotQueue queue_;
  const std::shared_ptr<FutexEvent> wakeup_;
  uint64_t popped_ = 0;
};

class SharedQueues::SharedSender final : public SlotSender {
 public:
  SharedSender(std::shared_ptr<SharedQueues> queues, int seat,
               std::shared_ptr<FutexEvent> wakeup)
      : queues_(std::move(queues)),
        queue_(*queues_, seat),
        wakeup_(std::move(wakeup)) {}

  absl::StatusOr<std::byte*> Slot() override {
    const uint64_t out = pushed_ - queue_.positions().popped.load();
    if (out > queue_.slots())
      return absl::DataLossError("a shared queue is not as its reader left it");
    return out == queue_.slots() ? nullptr : queue_.slot(pushed_);
  }
  void Push(uint64_t tag, size_t bytes) override {
    queue_.head(pushed_) = {tag, bytes};
    queue_.positions().pushed.store(++pushed_);
    wakeup_->Wake();
  }

 private:
  const std::shared_ptr<SharedQueues> queues_;
  const SlotQueue queue_;
  const std::shared_ptr<FutexEvent> wakeup_;
  uint64_t pushed_ = 0;
};

absl::StatusOr<std::shared_ptr<SharedQueues>> SharedQueues::Make(
    int seats, SlotQueueSize size) {
  ASSIGN_OR_RETURN(Segment memory, Segment::Create(static_cast<size_t>(seats) *
                                                   QueueBytes(size)));
  for (int seat = 0; seat < seats; ++seat)
    new (memory.data() + static_cast<size_t>(seat) * QueueBytes(size))
        Positions;
  return std::shared_ptr<SharedQueues>(
      new SharedQueues(std::move(memory), size));
}

absl::StatusOr<std::shared_ptr<SharedQueues>> SharedQueues::Open(
    const SharedQueuesHandle& handle, int seats, SlotQueueSize size) {
  ASSIGN_OR_RETURN(const std::string machine, BootId());
  if (handle.machine != machine)
    return absl::UnavailableError("the workers are on two machines");
  ASSIGN_OR_RETURN(Fd fd,
                   OpenFdOf(handle.process, handle.queues, handle.queues_file));
  ASSIGN_OR_RETURN(Segment memory,
                   Segment::Open(std::move(fd), static_cast<size_t>(seats) *
                                                    QueueBytes(size)));
  return std::shared_ptr<SharedQueues>(
      new SharedQueues(std::move(memory), size));
}

absl::StatusOr<std::shared_ptr<FutexEvent>> SharedQueues::OpenWaker(
    const SharedQueuesHandle& handle) {
  ASSIGN_OR_RETURN(Fd fd,
                   OpenFdOf(handle.process, handle.wakeup, handle.wakeup_file));
  return FutexEvent::Open(std::move(fd));
}

absl::StatusOr<SharedQueuesHandle> SharedQueues::HandleFor(
    const FutexEvent& wakeup) const {
  SharedQueuesHandle handle;
  handle.process = getpid();
  handle.queues = memory_.fd().get();
  handle.wakeup = wakeup.fd().get();
  ASSIGN_OR_RETURN(handle.queues_file, FileOf(memory_.fd()));
  ASSIGN_OR_RETURN(handle.wakeup_file, FileOf(wakeup.fd()));
  ASSIGN_OR_RETURN(handle.machine, BootId());
  return handle;
}

std::unique_ptr<SlotReceiver> SharedQueues::In(
    int seat, std::shared_ptr<FutexEvent> wakeup) {
  return std::make_unique<SharedReceiver>(shared_from_this(), seat,
                                          std::move(wakeup));
}

std::unique_ptr<SlotSender> SharedQueues::Out(
    int seat, std::shared_ptr<FutexEvent> wakeup) {
  return std::make_unique<SharedSender>(shared_from_this(), seat,
                                        std::move(wakeup));
}

}  // namespace baton::rpc

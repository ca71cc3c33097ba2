// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/futex_event.h"
#include "rpc/collectives/slot_queue.h"

namespace baton::rpc {

// One chunk of a queue, sent as a call. Plain data.
struct ChunkMessage {
  uint64_t from = 0;    // the sender's ticket
  uint64_t number = 0;  // from 0, in each queue
  uint64_t tag = 0;
  Tensor data;  // u8, dense

  static constexpr auto Fields() {
    return std::tuple{&ChunkMessage::from, &ChunkMessage::number,
                      &ChunkMessage::tag, &ChunkMessage::data};
  }
};

// The queues to one member of a group whose chunks arrive as calls between
// agents, also from other machines. A call is answered when its chunk has been
// taken, which makes room for another. Thread-safe.
class MessageQueues : public std::enable_shared_from_this<MessageQueues> {
 public:
  // `wakeup` is used to wake this member, the receiver.
  explicit MessageQueues(std::shared_ptr<FutexEvent> wakeup)
      : wakeup_(std::move(wakeup)) {}

  // Adds the chunk of a call. ResourceExhausted if the sender has not waited
  // for room.
  Future<void> Deliver(ChunkMessage message);
  // Returns the receiving end of the queue from the sender with this ticket.
  // Call it once for each sender.
  std::unique_ptr<SlotReceiver> In(uint64_t from);

  // What a sending end needs: `make` returns a tensor of `bytes` bytes to send,
  // `send` makes the call, and `wakeup` wakes the sender when there is room.
  struct Sender {
    uint64_t ticket = 0;
    std::function<Tensor(size_t bytes)> make;
    std::function<Future<void>(ChunkMessage)> send;
  };
  static std::unique_ptr<SlotSender> Out(Sender sender, SlotQueueSize size,
                                         std::shared_ptr<FutexEvent> wakeup);

 private:
  class MessageReceiver;
  class MessageSender;
  struct Waiting {
    ChunkMessage message;
    Promise<void> taken;
  };
  using Queue = std::map<uint64_t, Waiting>;  // by number

  const std::shared_ptr<FutexEvent> wakeup_;
  Mutex mutex_;
  std::map<uint64_t, Queue> queues_ ABSL_GUARDED_BY(mutex_);  // by ticket
};

}  // namespace baton::rpc

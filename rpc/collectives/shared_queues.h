// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "rpc/channels/futex_event.h"
#include "rpc/channels/segment.h"
#include "rpc/collectives/slot_queue.h"

namespace baton::rpc {

// What a sender opens the queues of a receiver by. Of use on the same machine
// and to the same user alone. Plain data.
struct SharedQueuesHandle {
  std::string machine;  // empty: there are none
  int64_t process = 0;
  int32_t queues = -1, wakeup = -1;  // descriptors of that process
  uint64_t queues_file = 0, wakeup_file = 0;

  static constexpr auto Fields() {
    using H = SharedQueuesHandle;
    return std::tuple{&H::machine, &H::process,     &H::queues,
                      &H::wakeup,  &H::queues_file, &H::wakeup_file};
  }
};

// The queues to one member of a group in memory that others of its machine
// write: a seat for each member of the group. Neither end believes the other: a
// position or a length that cannot be is DataLoss. Immutable.
class SharedQueues : public std::enable_shared_from_this<SharedQueues> {
 public:
  // The receiver's. ResourceExhausted when there is no memory for them.
  static absl::StatusOr<std::shared_ptr<SharedQueues>> Make(int seats,
                                                            SlotQueueSize size);
  // A sender's. Unavailable says why there is no way to them.
  static absl::StatusOr<std::shared_ptr<SharedQueues>> Open(
      const SharedQueuesHandle& handle, int seats, SlotQueueSize size);
  static absl::StatusOr<std::shared_ptr<FutexWaker>> OpenWaker(
      const SharedQueuesHandle& handle);

  // Of the receiver, which is woken by `wakeup`.
  absl::StatusOr<SharedQueuesHandle> HandleFor(const FutexEvent& wakeup) const;

  // The ends of one seat's queue, each to be made once. `wakeup` is the other
  // side's.
  std::unique_ptr<SlotReceiver> In(int seat,
                                   std::shared_ptr<FutexWaker> wakeup);
  std::unique_ptr<SlotSender> Out(int seat, std::shared_ptr<FutexWaker> wakeup);

 private:
  class SlotQueue;
  class SharedReceiver;
  class SharedSender;
  SharedQueues(Segment memory, SlotQueueSize size)
      : memory_(std::move(memory)), size_(size) {}

  const Segment memory_;
  const SlotQueueSize size_;
};

}  // namespace baton::rpc

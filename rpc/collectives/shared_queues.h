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

// What a sender needs to open the queues of a receiver. Usable only on the same
// machine and by the same user. Plain data.
struct SharedQueuesHandle {
  std::string machine;  // empty: no shared queues
  int64_t process = 0;
  int32_t queues = -1, wakeup = -1;  // descriptors of that process
  uint64_t queues_file = 0, wakeup_file = 0;

  static constexpr auto Fields() {
    using H = SharedQueuesHandle;
    return std::tuple{&H::machine, &H::process,     &H::queues,
                      &H::wakeup,  &H::queues_file, &H::wakeup_file};
  }
};

// The queues to one member of a group, in memory that other members on its
// machine write. There is one queue for each seat of the group. Neither end
// trusts the other: an impossible position or length is reported as DataLoss.
// Immutable.
class SharedQueues : public std::enable_shared_from_this<SharedQueues> {
 public:
  // Makes the queues of a receiver. ResourceExhausted if there is no memory for
  // them.
  static absl::StatusOr<std::shared_ptr<SharedQueues>> Make(int seats,
                                                            SlotQueueSize size);
  // Opens a receiver's queues at a sender. Unavailable says why they cannot be
  // reached.
  static absl::StatusOr<std::shared_ptr<SharedQueues>> Open(
      const SharedQueuesHandle& handle, int seats, SlotQueueSize size);
  static absl::StatusOr<std::shared_ptr<FutexEvent>> OpenWaker(
      const SharedQueuesHandle& handle);

  // Returns the receiver's handle for its senders, which wake it through
  // `wakeup`.
  absl::StatusOr<SharedQueuesHandle> HandleFor(const FutexEvent& wakeup) const;

  // These return the two ends of one seat's queue; call each once per seat.
  // `wakeup` wakes the other end.
  std::unique_ptr<SlotReceiver> In(int seat,
                                   std::shared_ptr<FutexEvent> wakeup);
  std::unique_ptr<SlotSender> Out(int seat, std::shared_ptr<FutexEvent> wakeup);

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

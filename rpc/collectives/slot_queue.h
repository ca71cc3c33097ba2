// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

// A queue carries chunks of bytes from one member of a group to another, in
// order, through slots that the sender fills and the receiver empties. There is
// one queue for each ordered pair of members; both ends know how many slots
// there are and how large they are (SlotQueueSize).
namespace baton::rpc {

// The number and size of slots, which are equal for all queues of a group.
struct SlotQueueSize {
  int slots = 0;
  size_t slot_bytes = 0;

  // Chooses two slots per member, 8 to 16: a ring of up to 8 members can have a
  // step of each of `members` stages under way. The queues to one member take
  // about 8 MB together, but each takes 64 KB to 1 MB.
  static SlotQueueSize For(int members) {
    constexpr size_t kBytes = size_t{8} << 20, kLeast = size_t{64} << 10,
                     kMost = size_t{1} << 20, kPage = 4096;
    const auto others = static_cast<size_t>(std::max(members - 1, 1));
    const size_t bytes = std::clamp(kBytes / others, kLeast, kMost);
    SlotQueueSize size;
    size.slots = std::clamp(2 * members, 8, 16);
    size.slot_bytes = bytes / static_cast<size_t>(size.slots) / kPage * kPage;
    return size;
  }
};

// A chunk in a queue. The receiver checks by `tag` and `bytes` that it is the
// chunk it expects.
struct Chunk {
  uint64_t tag = 0;
  uint64_t bytes = 0;
  const std::byte* data = nullptr;
};

// The receiving end of a queue. Confined to one thread.
class SlotReceiver {
 public:
  virtual ~SlotReceiver() = default;
  // Returns the next chunk, valid until Pop; its data is null if none has come
  // yet. DataLoss if the queue's content is invalid.
  virtual absl::StatusOr<Chunk> Front() = 0;
  virtual void Pop() = 0;
};

// The sending end of a queue. Confined to one thread.
class SlotSender {
 public:
  virtual ~SlotSender() = default;
  // Returns the next slot, to be filled and pushed; null while none is free. An
  // error says why none will become free.
  virtual absl::StatusOr<std::byte*> Slot() = 0;
  virtual void Push(uint64_t tag, size_t bytes) = 0;
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

// A queue carries chunks of bytes from one member of a group to another, in
// order, through slots that the sender fills and the receiver empties. There is
// one for each ordered pair; both ends know how many slots there are and how
// large they are (SlotQueueSize).
namespace baton::rpc {

// The same for all queues of a group.
struct SlotQueueSize {
  int slots = 0;
  size_t slot_bytes = 0;

  // So that a ring of all may have a step for each of its stages under way,
  // and the queues to one member take 8 MB, or 64 KB each if they are many.
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

// What the receiver must find in it to be the one that it waits for.
struct Chunk {
  uint64_t tag = 0;
  uint64_t bytes = 0;
  const std::byte* data = nullptr;
};

// The end that takes. Confined to one thread.
class SlotReceiver {
 public:
  virtual ~SlotReceiver() = default;
  // The next chunk, until Pop; null data when none has come yet. DataLoss for
  // what no sender writes.
  virtual absl::StatusOr<Chunk> Front() = 0;
  virtual void Pop() = 0;
};

// The end that gives. Confined to one thread.
class SlotSender {
 public:
  virtual ~SlotSender() = default;
  // The next slot, to be filled and pushed; null while there is none. Errors
  // say why there will be none.
  virtual absl::StatusOr<std::byte*> Slot() = 0;
  virtual void Push(uint64_t tag, size_t bytes) = 0;
};

}  // namespace baton::rpc

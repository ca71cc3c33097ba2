// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/arena.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

// The segments that one peer has mapped to read from, and who has which of
// their blocks: the peer, by a lease, or a tensor of this process that was made
// to be sent without a copy. A segment stays mapped while such a tensor is in
// it, whatever becomes of this object, the connection and the peer.
// Thread-safe.
class ExportedBlocks : public std::enable_shared_from_this<ExportedBlocks> {
 public:
  using Clock = std::chrono::steady_clock;
  using Segments = std::map<uint32_t, std::shared_ptr<Segment>>;

  // Its blocks may be taken from now on.
  void Add(uint32_t id, std::shared_ptr<Segment> segment);
  // Whether there are segments, beside the first, of which nobody has a block,
  // nor has had one since `before`. TakeIdle gives them, and no block of them
  // is taken any more.
  bool HasIdle(Clock::time_point before) const;
  Segments TakeIdle(Clock::time_point before);

  // A block that is the peer's until its lease is back.
  struct Leased {
    uint64_t lease = 0;
    Arena::Block block = {};
    std::shared_ptr<Segment> segment = nullptr;
  };
  // Nothing when there is no room.
  std::optional<Leased> Lease(uint64_t bytes);
  // False for one that is not out. After Forget there is none to be given back.
  bool GiveBack(uint64_t lease);

  // A tensor of the CPU, uninitialised, that has a block for itself: it goes
  // back with the tensor's last view. Undefined when there is no room.
  Tensor Make(const TensorSpec& spec);
  // Leases the block of such a tensor and takes the tensor away. Nothing, and
  // the tensor untouched, unless it is the only handle to its storage, and
  // views all of it without gaps.
  std::optional<Leased> LeaseMade(Tensor& tensor);

  // The peer is gone: nothing is leased or made any more. The caller unmaps the
  // segments, which takes long.
  Segments Forget();

  bool HasRoom(uint64_t bytes) const;
  uint64_t capacity() const;
  SentTensors counts() const;

 private:
  Leased LeaseLocked(const Arena::Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveLocked(const Arena::Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIdleLocked(uint32_t id, Clock::time_point before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The end of a made tensor, sent or not.
  void Drop(uint64_t storage);

  mutable Mutex mutex_;
  bool forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  Arena arena_ ABSL_GUARDED_BY(mutex_);
  Segments segments_ ABSL_GUARDED_BY(mutex_);
  // When they were made, or a block of them came back last.
  std::map<uint32_t, Clock::time_point> used_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Arena::Block> leases_ ABSL_GUARDED_BY(mutex_);
  // Not sent yet, by the ids of their storages.
  std::map<uint64_t, Arena::Block> made_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

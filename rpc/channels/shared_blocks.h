// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

// Tracks which blocks of a sender's segments are in use. Blocks begin at
// multiples of a page and are taken first fit, lowest first, so that a steady
// stream of messages stays on few pages. The bookkeeping is kept outside the
// segments, which the other process can write. Thread-compatible.
class Arena {
 public:
  struct Block {
    uint32_t segment = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;  // as requested, not rounded up to pages
  };

  void Add(uint32_t segment, uint64_t bytes);
  // Returns nothing if no segment has that many bytes in one piece.
  std::optional<Block> Take(uint64_t bytes);
  bool HasRoom(uint64_t bytes) const;
  void Give(const Block& block);
  // Returns true if no block of the segment is in use; then it may be removed.
  bool IsFree(uint32_t segment) const;
  void Remove(uint32_t segment);

  uint64_t capacity() const { return capacity_; }

 private:
  using Gaps = std::map<uint64_t, uint64_t>;  // offset -> bytes; never adjacent
  std::map<uint32_t, Gaps> gaps_;
  std::map<uint32_t, uint64_t> sizes_;
  uint64_t capacity_ = 0;
};

// The segments that one peer has mapped to read from, and the owner of each
// block in use: the peer, by a lease, or a tensor of this process that was made
// to be sent without a copy. A segment stays mapped while such a tensor lies in
// it, whatever happens to this object, the connection and the peer.
// Thread-safe.
class ExportedBlocks : public std::enable_shared_from_this<ExportedBlocks> {
 public:
  using Clock = std::chrono::steady_clock;
  using Segments = std::map<uint32_t, std::shared_ptr<Segment>>;

  // Makes the segment's blocks available.
  void Add(uint32_t id, std::shared_ptr<Segment> segment);
  // HasIdle returns whether any segment but the first has no block in use and
  // has had none since `before`. TakeIdle removes these segments, whose blocks
  // are then no longer handed out, and returns them.
  bool HasIdle(Clock::time_point before) const;
  Segments TakeIdle(Clock::time_point before);

  // A block that belongs to the peer until its lease is released.
  struct Leased {
    uint64_t lease = 0;
    Arena::Block block = {};
    std::shared_ptr<Segment> segment = nullptr;
  };
  // Returns nothing if there is no room.
  std::optional<Leased> Lease(uint64_t bytes);
  // Returns false for a lease that the peer does not hold. After Forget every
  // lease is accepted and ignored.
  bool GiveBack(uint64_t lease);

  // Returns an uninitialized CPU tensor in a block of its own, which is freed
  // with the tensor's last view. Undefined if there is no room.
  Tensor Make(const TensorSpec& spec);
  // Leases the block of a tensor that Make returned, and consumes the tensor.
  // Returns nothing, and leaves the tensor untouched, unless it is the only
  // handle to its storage and views all of it without gaps.
  std::optional<Leased> LeaseMade(Tensor& tensor);

  // Called when the peer is gone: nothing is leased or made any more. Returns
  // the segments, for the caller to unmap, which is slow.
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
  // Called when the storage of a tensor that Make returned is freed; does
  // nothing if the tensor was sent.
  void Drop(uint64_t storage);

  mutable Mutex mutex_;
  bool forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  Arena arena_ ABSL_GUARDED_BY(mutex_);
  Segments segments_ ABSL_GUARDED_BY(mutex_);
  // When each segment was added, or a block of it was last returned.
  std::map<uint32_t, Clock::time_point> used_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Arena::Block> leases_ ABSL_GUARDED_BY(mutex_);
  // Blocks of made tensors that were not sent yet, by storage id.
  std::map<uint64_t, Arena::Block> made_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
};

// The segments of one peer that this process has mapped, and the tensors in
// them. A segment stays mapped while a tensor lies in it, whatever happens to
// this object, the connection and the peer. Thread-safe.
class ImportedBlocks : public std::enable_shared_from_this<ImportedBlocks> {
 public:
  explicit ImportedBlocks(std::shared_ptr<ChannelPort> port)
      : port_(std::move(port)) {}

  // InvalidArgument for an id that is in use.
  absl::Status Add(uint32_t id, std::shared_ptr<Segment> segment);
  // No new tensors are imported from this segment.
  void Close(uint32_t id);
  struct Block {
    uint32_t segment = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t lease = 0;
  };
  // InvalidArgument unless the block lies within a segment and has the tensor's
  // size, and its lease is new.
  absl::StatusOr<Tensor> Import(const TensorSpec& spec, const Block& block);

  // No new tensors are imported. Unmaps the segments that hold none.
  void Forget();

  ReceivedTensors counts() const;

 private:
  void Return(uint64_t lease);

  const std::shared_ptr<ChannelPort> port_;
  mutable Mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Segment>> segments_
      ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> leases_ ABSL_GUARDED_BY(mutex_);
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

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

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace baton::rpc {

// Who has what of the segments that a sender writes to: blocks at offsets that
// are multiples of a page, first fit, the lowest first, so that a steady
// stream of messages stays on few pages. The bookkeeping is apart from the
// memory, which the other process can write. Thread-compatible.
class Arena {
 public:
  struct Block {
    uint32_t segment = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;  // as asked for
  };

  void Add(uint32_t segment, uint64_t bytes);
  // Nothing when no segment has that much in one piece.
  std::optional<Block> Take(uint64_t bytes);
  bool HasRoom(uint64_t bytes) const;
  void Give(const Block& block);
  // Whether nobody has a block of it; then it may be taken away.
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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/arena.h"

#include <algorithm>
#include <iterator>

namespace baton::rpc {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t PagesOf(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}

}  // namespace

void Arena::Add(uint32_t segment, uint64_t bytes) {
  gaps_[segment] = {{0, bytes}};
  sizes_[segment] = bytes;
  capacity_ += bytes;
}

std::optional<Arena::Block> Arena::Take(uint64_t bytes) {
  const uint64_t size = PagesOf(bytes);
  for (auto& [segment, gaps] : gaps_) {
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      const auto [offset, room] = *gap;
      if (room < size) continue;
      gaps.erase(gap);
      if (room > size) gaps.emplace(offset + size, room - size);
      return Block{segment, offset, bytes};
    }
  }
  return std::nullopt;
}

bool Arena::HasRoom(uint64_t bytes) const {
  const uint64_t size = PagesOf(bytes);
  return std::any_of(gaps_.begin(), gaps_.end(), [size](const auto& segment) {
    return std::any_of(segment.second.begin(), segment.second.end(),
                       [size](const auto& gap) { return gap.second >= size; });
  });
}

void Arena::Give(const Block& block) {
  Gaps& gaps = gaps_.at(block.segment);
  uint64_t offset = block.offset;
  uint64_t size = PagesOf(block.bytes);
  auto next = gaps.lower_bound(offset);
  if (next != gaps.end() && next->first == offset + size) {
    size += next->second;
    next = gaps.erase(next);
  }
  if (next != gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      gaps.erase(before);
    }
  }
  gaps.emplace(offset, size);
}

bool Arena::IsFree(uint32_t segment) const {
  const Gaps& gaps = gaps_.at(segment);
  return gaps.size() == 1 && gaps.begin()->second == sizes_.at(segment);
}

void Arena::Remove(uint32_t segment) {
  capacity_ -= sizes_.at(segment);
  sizes_.erase(segment);
  gaps_.erase(segment);
}

}  // namespace baton::rpc

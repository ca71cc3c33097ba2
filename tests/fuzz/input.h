// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace baton::fuzz {

// Cuts one input into choices and pieces. Confined to one thread.
class Input {
 public:
  explicit Input(const std::string& bytes) : bytes_(bytes) {}

  bool empty() const { return at_ >= bytes_.size(); }
  // 0 at the end.
  uint8_t Byte() { return empty() ? 0 : static_cast<uint8_t>(bytes_[at_++]); }
  // A length of two bytes, little-endian, and so many bytes, or what is left.
  std::string Chunk() {
    const size_t low = Byte();
    const size_t size = low | size_t{Byte()} << 8;
    std::string chunk = bytes_.substr(std::min(at_, bytes_.size()), size);
    at_ += chunk.size();
    return chunk;
  }
  std::string Rest() {
    std::string rest = bytes_.substr(std::min(at_, bytes_.size()));
    at_ = bytes_.size();
    return rest;
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace baton::fuzz

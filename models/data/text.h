// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/random.h"
#include "core/tensor.h"

namespace baton::data {

// What a language model learns from: targets[n][t] is the token that follows
// ids[n][0 .. t].
struct TokenBatch {
  Tensor ids;      // i64 [N, T]
  Tensor targets;  // i64 [N, T]
};

// A text whose tokens are its bytes, 0 to 255. Copies share the bytes. Throws
// Error where a text is too short for what is asked of it. Thread-safe, but for
// the generator.
class ByteText {
 public:
  static constexpr int64_t kVocabulary = 256;

  explicit ByteText(const std::string& text);
  // Of a file, plain or compressed, or of all files in a folder one behind the
  // other, by their names. Errors name it, NotFound for a folder without files.
  static absl::StatusOr<ByteText> Read(const std::string& path);

  int64_t size() const { return bytes_.numel(); }
  // Bytes [begin, end), within the text.
  ByteText Part(int64_t begin, int64_t end) const;

  // `count` windows of `length` tokens that begin anywhere.
  TokenBatch Draw(int64_t count, int64_t length, Generator& generator) const;
  // Window i begins at i * length: the whole ones, one behind the other.
  int64_t windows(int64_t length) const;
  TokenBatch Windows(int64_t first, int64_t count, int64_t length) const;

 private:
  explicit ByteText(Tensor bytes) : bytes_(std::move(bytes)) {}
  TokenBatch BatchAt(const Tensor& starts, int64_t length) const;

  Tensor bytes_;  // u8 [size]
};

}  // namespace baton::data

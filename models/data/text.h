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

// A batch to train a language model: targets[n][t] is the token that follows
// ids[n][0 .. t].
struct TokenBatch {
  Tensor ids;      // i64 [N, T]
  Tensor targets;  // i64 [N, T]
};

// A text whose tokens are its bytes, 0 to 255. Copies share the bytes. Methods
// throw Error if the text is too short for the request. Thread-safe, except for
// the generator.
class ByteText {
 public:
  static constexpr int64_t kVocabulary = 256;

  explicit ByteText(const std::string& text);
  // Reads a file, plain or compressed, or all files in a folder, concatenated
  // in the order of their names. Errors name the path; NotFound if a folder has
  // no files.
  static absl::StatusOr<ByteText> Read(const std::string& path);

  int64_t size() const { return bytes_.numel(); }
  // Returns bytes [begin, end), which must be within the text.
  ByteText Part(int64_t begin, int64_t end) const;

  // Returns `count` windows of `length` tokens at random positions.
  TokenBatch Draw(int64_t count, int64_t length, Generator& generator) const;
  // Returns consecutive windows: window i begins at i * length. `windows`
  // counts the complete ones.
  int64_t windows(int64_t length) const;
  TokenBatch Windows(int64_t first, int64_t count, int64_t length) const;

 private:
  explicit ByteText(Tensor bytes) : bytes_(std::move(bytes)) {}
  TokenBatch BatchAt(const Tensor& starts, int64_t length) const;

  Tensor bytes_;  // u8 [size]
};

}  // namespace baton::data

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "models/data/text.h"

namespace baton::examples {

// The words of a text, parted by spaces, by number: the most frequent one is 0.
// The end of a line is a word, and so is <unk>, which stands for all words that
// are not among them. Immutable.
class Vocabulary {
 public:
  // Of the `most` most frequent ones.
  Vocabulary(const std::string& text, int64_t most);

  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  // i64 [words].
  Tensor NumbersOf(const std::string& text) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

// A text cut into columns that are read side by side, from top to bottom, as
// recurrent models do: [T, N] at a time. Immutable.
class TextColumns {
 public:
  // What is left over is not read. Throws Error where a column would have less
  // than two words.
  TextColumns(const Tensor& words, int64_t columns);

  int64_t pieces(int64_t length) const;  // the last one may be shorter
  data::TokenBatch Piece(int64_t number, int64_t length) const;

 private:
  Tensor rows_;  // i64 [words of a column, N]
};

struct WordTexts {
  int64_t vocabulary = 0;
  Tensor training, held_out;  // i64 [words]
};
// From files, plain or compressed. Without one held out, it is the last tenth
// of the other. Errors name the file.
absl::StatusOr<WordTexts> ReadWords(const std::string& training,
                                    const std::string& held_out,
                                    int64_t most_words);

}  // namespace baton::examples

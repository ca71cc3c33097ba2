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

// Numbers the words of a text, which spaces separate, by their frequency: the
// most frequent one is 0. The end of a line is a word, and <unk> stands for all
// words that are not among the numbered ones. Immutable.
class Vocabulary {
 public:
  // Numbers the `most` most frequent words.
  Vocabulary(const std::string& text, int64_t most);

  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  // Returns i64 [words].
  Tensor NumbersOf(const std::string& text) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

// A text cut into columns that recurrent models read side by side from top to
// bottom, [T, N] at a time. Immutable.
class TextColumns {
 public:
  // Words that do not fill a row are dropped. Throws Error if a column would
  // have fewer than two words.
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
// Reads the files, plain or compressed. If `held_out` is empty, holds out the
// last tenth of the training text. Errors name the file.
absl::StatusOr<WordTexts> ReadWords(const std::string& training,
                                    const std::string& held_out,
                                    int64_t most_words);

}  // namespace baton::examples

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_text.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "core/status.h"
#include "models/data/archive.h"

namespace baton::examples {
namespace {

constexpr char kEndOfLine[] = "<eos>";
constexpr char kUnknown[] = "<unk>";

// Calls on_word(word) for each word, in order.
template <typename OnWord>
void ForEachWord(const std::string& text, const OnWord& on_word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) on_word(word);
    on_word(kEndOfLine);
  }
}

}  // namespace

Vocabulary::Vocabulary(const std::string& text, int64_t most) {
  std::map<std::string, int64_t> times = {{kUnknown, 0}};
  ForEachWord(text, [&](const std::string& word) { ++times[word]; });
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, of_it] : times)
    order.emplace_back(word == kUnknown ? of_it + 1 : of_it, word);
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  if (static_cast<int64_t>(order.size()) > most)
    order.resize(static_cast<size_t>(most));
  for (const auto& [of_it, word] : order) numbers_.emplace(word, size());
  if (!numbers_.contains(kUnknown)) {
    const std::string& last = order.back().second;
    numbers_.emplace(kUnknown, numbers_.at(last));
    numbers_.erase(last);
  }
}

Tensor Vocabulary::NumbersOf(const std::string& text) const {
  std::vector<int64_t> numbers;
  const int64_t unknown = numbers_.at(kUnknown);
  ForEachWord(text, [&](const std::string& word) {
    const auto found = numbers_.find(word);
    numbers.push_back(found == numbers_.end() ? unknown : found->second);
  });
  return Tensor::From(numbers);
}

TextColumns::TextColumns(const Tensor& words, int64_t columns) {
  const int64_t rows = words.numel() / columns;
  Require(rows >= 2, "text_columns", "expected two words or more in each of ",
          columns, " columns, got ", words.numel(), " in all");
  rows_ = words.Slice(0, 0, rows * columns)
              .Reshape({columns, rows})
              .Transpose(0, 1)
              .Contiguous();
}

int64_t TextColumns::pieces(int64_t length) const {
  return (rows_.dim(0) - 1 + length - 1) / length;
}

data::TokenBatch TextColumns::Piece(int64_t number, int64_t length) const {
  const int64_t begin = number * length;
  const int64_t end = std::min(begin + length, rows_.dim(0) - 1);
  return {rows_.Slice(0, begin, end), rows_.Slice(0, begin + 1, end + 1)};
}

absl::StatusOr<WordTexts> ReadWords(const std::string& training,
                                    const std::string& held_out,
                                    int64_t most_words) {
  ASSIGN_OR_RETURN(const std::string text, data::ReadUnpacked(training));
  const Vocabulary vocabulary(text, most_words);
  WordTexts texts{.vocabulary = vocabulary.size(),
                  .training = vocabulary.NumbersOf(text),
                  .held_out = {}};
  if (!held_out.empty()) {
    ASSIGN_OR_RETURN(const std::string other, data::ReadUnpacked(held_out));
    texts.held_out = vocabulary.NumbersOf(other);
    return texts;
  }
  const int64_t all = texts.training.numel(), kept = all - all / 10;
  texts.held_out = texts.training.Slice(0, kept, all);
  texts.training = texts.training.Slice(0, 0, kept);
  return texts;
}

}  // namespace baton::examples

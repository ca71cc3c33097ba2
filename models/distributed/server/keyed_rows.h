// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/distributed/server/row_index.h"

namespace baton::dist {

// The rows that the keys of a table have, and in a bounded table the order in
// which they were used. Rows are numbered from 0; those of forgotten keys are
// given to new ones. Thread-compatible.
class KeyedRows {
 public:
  using Row = RowIndex::Row;
  static constexpr Row kNone = RowIndex::kNone;

  // Keeps at most `limit` rows; 0: all.
  explicit KeyedRows(int64_t limit) : limit_(limit) {}

  bool bounded() const { return limit_ > 0; }
  int64_t size() const { return static_cast<int64_t>(row_of_.size()); }
  // Rows are below this number.
  int64_t end() const { return static_cast<int64_t>(key_of_.size()); }
  // Always inline, because g++ 12 drops calls of functions that only prefetch.
  [[gnu::always_inline]] void Prefetch(int64_t key) const {
    row_of_.Prefetch(key);
  }
  // Returns kNone for an unknown key.
  Row Find(int64_t key) const { return row_of_.Find(key); }
  // Returns the row, and whether the key is new.
  std::pair<Row, bool> FindOrAdd(int64_t key) {
    Row& row = row_of_.FindOrAdd(key);
    const bool is_new = row == kNone;
    if (is_new) row = NewRow(key);
    return {row, is_new};
  }
  // Makes it the row that is forgotten last.
  void Use(Row row) {
    if (!bounded() || row == newest_) return;
    Unlink(row);
    Append(row);
  }
  // Forgets the least recently used rows beyond the limit.
  void ForgetRest() {
    while (bounded() && size() > limit_) {
      const Row row = oldest_;
      Unlink(row);
      row_of_.Erase(key_of_[static_cast<size_t>(row)]);
      free_.push_back(row);
    }
  }
  // Calls fn(key, row) for all rows: in a bounded table, the first to be
  // forgotten comes first.
  template <typename Fn>
  void ForEach(Fn fn) const {
    if (!bounded()) return row_of_.ForEach(fn);
    for (Row row = oldest_; row != kNone;
         row = newer_[static_cast<size_t>(row)])
      fn(key_of_[static_cast<size_t>(row)], row);
  }

 private:
  Row NewRow(int64_t key) {
    Row row = kNone;
    if (!free_.empty()) {
      row = free_.back();
      free_.pop_back();
    } else {
      row = static_cast<Row>(key_of_.size());
      key_of_.push_back(0);
      if (bounded()) {
        older_.push_back(kNone);
        newer_.push_back(kNone);
      }
    }
    key_of_[static_cast<size_t>(row)] = key;
    if (bounded()) Append(row);
    return row;
  }
  void Append(Row row) {
    const auto at = static_cast<size_t>(row);
    older_[at] = newest_;
    newer_[at] = kNone;
    if (newest_ != kNone) newer_[static_cast<size_t>(newest_)] = row;
    newest_ = row;
    if (oldest_ == kNone) oldest_ = row;
  }
  void Unlink(Row row) {
    const Row older = older_[static_cast<size_t>(row)];
    const Row newer = newer_[static_cast<size_t>(row)];
    (older == kNone ? oldest_ : newer_[static_cast<size_t>(older)]) = newer;
    (newer == kNone ? newest_ : older_[static_cast<size_t>(newer)]) = older;
  }

  const int64_t limit_;
  RowIndex row_of_;
  std::vector<int64_t> key_of_;
  std::vector<Row> free_;
  std::vector<Row> older_, newer_;  // links of the order of use, in bounded
                                    // tables
  Row oldest_ = kNone, newest_ = kNone;
};

}  // namespace baton::dist

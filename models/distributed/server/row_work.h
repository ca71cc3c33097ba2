// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/cpu/allocator.h"
#include "models/distributed/server/row_index.h"

namespace baton::dist {

// How a step changes a row.
struct TouchedRow {
  const float* gradient;
  RowIndex::Row row;
  int32_t sum = -1;  // index of the sum, if there are several gradients; else
                     // -1
};

// The work of a step: each row once, with the sum of its gradients. Finding a
// row among those already named uses a small table, which stays in the caches;
// one with an entry for every row of a RowTable could not. Thread-compatible.
class RowWork {
 public:
  // The number of parts that rows are distributed over, so that several threads
  // can step them: a row is in the same part in every step.
  static constexpr size_t kParts = 16;

  RowWork(int64_t most, int64_t width)
      : width_(width),
        mask_(std::bit_ceil(static_cast<uint64_t>(2 * most + 1)) - 1),
        places_(mask_ + 1, -1) {
    touched_.reserve(static_cast<size_t>(most));
  }

  void Add(RowIndex::Row row, const float* gradient) {
    int32_t& place = PlaceOf(row);
    if (place < 0) {
      place = static_cast<int32_t>(touched_.size());
      touched_.push_back({.gradient = gradient, .row = row});
    } else {
      AddTo(touched_[static_cast<size_t>(place)], gradient);
    }
  }
  // Distributes the rows to parts; call it after the last Add.
  void DealOut();
  size_t rows() const { return touched_.size(); }
  const TouchedRow* begin() const { return touched_.data(); }
  const TouchedRow* end() const { return begin() + rows(); }
  // The rows of one part, after DealOut.
  const TouchedRow* begin(size_t part) const { return begin() + first_[part]; }
  const TouchedRow* end(size_t part) const { return begin(part + 1); }

 private:
  // Every push has its own: fresh memory from the system for each would cost
  // page faults, and its return interrupts the threads of all cores.
  template <typename T>
  using Kept = std::vector<T, cpu::ContainerAllocator<T>>;
  static constexpr uint64_t kSpread =
      0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  static size_t PartOf(RowIndex::Row row) {
    return static_cast<uint64_t>(row) * kSpread >> 60U;
  }

  // Returns a value below 0 if the row is new; the caller must then set it.
  int32_t& PlaceOf(RowIndex::Row row) {
    uint64_t at = static_cast<uint64_t>(row) * kSpread >> 32U & mask_;
    while (places_[at] >= 0 &&
           touched_[static_cast<size_t>(places_[at])].row != row)
      at = (at + 1) & mask_;
    return places_[at];
  }
  void AddTo(TouchedRow& touched, const float* gradient) {
    if (touched.sum < 0) {
      touched.sum = static_cast<int32_t>(sums_.size());
      sums_.emplace_back(touched.gradient, touched.gradient + width_);
    }
    std::vector<float>& sum = sums_[static_cast<size_t>(touched.sum)];
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    touched.gradient = sum.data();
  }

  const int64_t width_;
  const uint64_t mask_;
  Kept<int32_t> places_;
  Kept<TouchedRow> touched_;
  std::array<size_t, kParts + 1> first_{};  // of each part, in touched_
  std::vector<std::vector<float>> sums_;
};

inline void RowWork::DealOut() {
  places_ = {};
  for (const TouchedRow& each : touched_) ++first_[PartOf(each.row) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  auto next = first_;
  Kept<TouchedRow> dealt(touched_.size());
  for (const TouchedRow& each : touched_)
    dealt[next[PartOf(each.row)]++] = each;
  touched_.swap(dealt);
}

}  // namespace baton::dist

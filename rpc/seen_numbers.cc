// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/seen_numbers.h"

#include <cstddef>
#include <limits>

namespace baton::rpc::internal {
namespace {

constexpr size_t kRememberGaps = 65'536;

}  // namespace

bool SeenNumbers::FirstTime(uint64_t number) {
  if (number == 0 || number == std::numeric_limits<uint64_t>::max()) {
    return false;
  }
  if (number >= next_) {
    if (number > next_) missing_.emplace_hint(missing_.end(), next_, number);
    next_ = number + 1;
    ForgetOldestGaps();
    return true;
  }
  auto gap = missing_.upper_bound(number);
  if (gap == missing_.begin()) return false;
  --gap;
  const auto [first, end] = *gap;
  if (number >= end) return false;
  if (number == first) {
    missing_.erase(gap);
  } else {
    gap->second = number;
  }
  if (number + 1 < end) missing_.emplace(number + 1, end);
  ForgetOldestGaps();
  return true;
}

void SeenNumbers::ForgetOldestGaps() {
  while (missing_.size() > kRememberGaps) missing_.erase(missing_.begin());
}

}  // namespace baton::rpc::internal

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/distinct_keys.h"

#include <cstdint>
#include <vector>

#include "models/distributed/server/row_index.h"

namespace baton::dist {

DistinctKeys DistinctOf(const Tensor& given) {
  DistinctKeys distinct{.keys = {}, .places = Tensor::EmptyLike(given)};
  RowIndex place_of;
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < given.numel(); ++i) {
    const int64_t key = given.data<int64_t>()[i];
    RowIndex::Row& place = place_of.FindOrAdd(key);
    if (place == RowIndex::kNone) {
      place = static_cast<RowIndex::Row>(keys.size());
      keys.push_back(key);
    }
    distinct.places.data<int64_t>()[i] = place;
  }
  distinct.keys = Tensor::From(keys);
  return distinct;
}

}  // namespace baton::dist

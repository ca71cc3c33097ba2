// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/distinct_keys.h"

#include <cstdint>
#include <vector>

#include "core/ops/rows.h"
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

RowGradients SumOfKeys(const RowGradients& given) {
  const DistinctKeys distinct = DistinctOf(given.keys);
  if (distinct.keys.numel() == given.keys.numel()) return given;
  const Device device = given.gradients.device();
  RowGradients sums = given;
  sums.keys = distinct.keys;
  sums.gradients = Tensor::Zeros(
      {distinct.keys.numel(), given.gradients.dim(1)}, {.device = device});
  ops::AddRowsInto(sums.gradients,
                   {distinct.places.To(device), given.gradients});
  return sums;
}

}  // namespace baton::dist

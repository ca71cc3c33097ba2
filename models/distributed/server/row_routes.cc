// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_routes.h"

#include <algorithm>

#include "models/distributed/server/key_layout.h"

namespace baton::dist {
namespace {

using Places = std::vector<std::vector<int64_t>>;  // by shard

Places PlacesOf(const Tensor& keys, int shards) {
  Places places(static_cast<size_t>(shards));
  const int64_t* key = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i)
    places[static_cast<size_t>(ShardOfRow(key[i], shards))].push_back(i);
  return places;
}

Tensor Take(const Tensor& keys, const std::vector<int64_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  if (count == keys.numel()) return keys;
  Tensor taken = Tensor::Empty({count}, {.dtype = DType::kI64});
  int64_t* to = taken.data<int64_t>();
  for (const int64_t place : places) *to++ = keys.data<int64_t>()[place];
  return taken;
}

Tensor TakeRows(const Tensor& rows, const std::vector<int64_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  if (count == rows.dim(0)) return rows;
  const int64_t width = rows.dim(1);
  Tensor taken = Tensor::Empty({count, width});
  float* to = taken.data<float>();
  for (const int64_t place : places)
    to = std::copy_n(rows.data<float>() + place * width, width, to);
  return taken;
}

}  // namespace

RowRoutes::RowRoutes(const ServerOptions& options, int shards,
                     const std::vector<RowGradients>& gradients,
                     const std::vector<RowKeys>& keys)
    : gradients_(static_cast<size_t>(shards)),
      keys_(static_cast<size_t>(shards)) {
  for (const RowGradients& rows : gradients) {
    const Tensor all_keys = RowsOnHost(rows.keys);
    const Tensor all_rows = RowsOnHost(rows.gradients);
    const Places places = PlacesOf(all_keys, shards);
    for (size_t shard = 0; shard < places.size(); ++shard) {
      if (places[shard].empty()) continue;
      gradients_[shard].push_back(
          {.table = rows.table,
           .keys = Take(all_keys, places[shard]),
           .gradients = TakeRows(all_rows, places[shard])});
    }
  }
  for (const RowKeys& rows : keys) {
    const Tensor all_keys = RowsOnHost(rows.keys);
    places_.push_back(PlacesOf(all_keys, shards));
    widths_.push_back(options.tables[static_cast<size_t>(rows.table)].width);
    for (size_t shard = 0; shard < keys_.size(); ++shard) {
      keys_[shard].push_back(
          {.table = rows.table, .keys = Take(all_keys, places_.back()[shard])});
    }
  }
}

std::vector<Tensor> RowRoutes::Join(
    const std::vector<std::vector<Tensor>>& of_shards) const {
  std::vector<Tensor> joined;
  for (size_t i = 0; i < places_.size(); ++i) {
    int64_t count = 0;
    for (const auto& places : places_[i])
      count += static_cast<int64_t>(places.size());
    const auto whole =
        std::find_if(of_shards.begin(), of_shards.end(),
                     [&](const auto& rows) { return rows[i].dim(0) == count; });
    if (whole != of_shards.end()) {
      joined.push_back((*whole)[i]);
      continue;
    }
    Tensor rows = Tensor::Empty({count, widths_[i]});
    for (size_t shard = 0; shard < of_shards.size(); ++shard) {
      const float* from = of_shards[shard][i].data<float>();
      for (const int64_t place : places_[i][shard]) {
        std::copy_n(from, widths_[i], rows.data<float>() + place * widths_[i]);
        from += widths_[i];
      }
    }
    joined.push_back(rows);
  }
  return joined;
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_routes.h"

#include <algorithm>

#include "core/ops/indexing.h"

namespace baton::dist {
namespace {

using Places = std::vector<std::vector<int64_t>>;  // by shard

Places PlacesOf(const RowTableOptions& table, const Tensor& keys, int shards) {
  Places places(static_cast<size_t>(shards));
  const int64_t* key = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i)
    places[static_cast<size_t>(ShardOfRow(table, key[i], shards))].push_back(i);
  return places;
}

// Returns the selected keys as they are called at their shard.
Tensor Take(const RowTableOptions& table, const Tensor& keys,
            const std::vector<int64_t>& places, int shards) {
  Tensor taken = Tensor::Empty({static_cast<int64_t>(places.size())},
                               {.dtype = DType::kI64});
  int64_t* to = taken.data<int64_t>();
  for (const int64_t place : places) {
    const int64_t key = keys.data<int64_t>()[place];
    *to++ = table.rows > 0 ? key / shards : key;
  }
  return taken;
}

}  // namespace

RowRoutes::RowRoutes(const ServerOptions& options, int shards,
                     const std::vector<RowGradients>& gradients,
                     const std::vector<RowKeys>& keys)
    : gradients_(static_cast<size_t>(shards)),
      keys_(static_cast<size_t>(shards)) {
  for (const RowGradients& rows : gradients)
    AddGradients(options.tables[static_cast<size_t>(rows.table)], rows);
  for (const RowKeys& rows : keys)
    AddKeys(options.tables[static_cast<size_t>(rows.table)], rows);
}

void RowRoutes::AddGradients(const RowTableOptions& table,
                             const RowGradients& rows) {
  if (shards() == 1) {
    if (rows.keys.numel() > 0)
      gradients_[0].push_back({.rows = rows, .places = {}});
    return;
  }
  const Tensor keys = PlacedOn(Device::Cpu(), rows.keys);
  const Places places = PlacesOf(table, keys, shards());
  for (size_t shard = 0; shard < places.size(); ++shard) {
    if (places[shard].empty()) continue;
    gradients_[shard].push_back(
        {.rows = {.table = rows.table,
                  .keys = Take(table, keys, places[shard], shards()),
                  .gradients = rows.gradients},
         .places = Tensor::From(places[shard]).To(rows.gradients.device())});
  }
}

std::vector<RowGradients> RowRoutes::Gradients(
    int shard, const ShardState::Empty& empty) const {
  std::vector<RowGradients> gradients;
  for (const Picked& picked : gradients_[static_cast<size_t>(shard)]) {
    gradients.push_back(picked.rows);
    if (!picked.places.defined()) continue;
    const Tensor& all = picked.rows.gradients;
    Tensor& rows = gradients.back().gradients;
    rows = empty({picked.places.numel(), all.dim(1)}, {.device = all.device()});
    ops::EmbeddingInto(rows, all, picked.places);
  }
  return gradients;
}

void RowRoutes::AddKeys(const RowTableOptions& table, const RowKeys& rows) {
  widths_.push_back(table.width);
  places_.emplace_back();
  if (shards() == 1) {
    keys_[0].push_back(rows);
    return;
  }
  const Tensor keys = PlacedOn(Device::Cpu(), rows.keys);
  places_.back() = PlacesOf(table, keys, shards());
  for (size_t shard = 0; shard < keys_.size(); ++shard) {
    keys_[shard].push_back(
        {.table = rows.table,
         .keys = Take(table, keys, places_.back()[shard], shards())});
  }
}

std::vector<Tensor> RowRoutes::Join(
    const std::vector<std::vector<Tensor>>& of_shards) const {
  std::vector<Tensor> joined;
  for (size_t i = 0; i < places_.size(); ++i) {
    std::vector<Tensor> parts;
    for (const std::vector<Tensor>& rows : of_shards) parts.push_back(rows[i]);
    joined.push_back(parts.size() == 1 ? parts[0] : JoinTable(i, parts));
  }
  return joined;
}

Tensor RowRoutes::JoinTable(size_t table,
                            const std::vector<Tensor>& parts) const {
  const Places& places = places_[table];
  int64_t count = 0;
  for (const auto& of_shard : places)
    count += static_cast<int64_t>(of_shard.size());
  for (const Tensor& part : parts)
    if (part.dim(0) == count) return part;
  if (parts[0].device().is_cuda()) {
    const Tensor order = Tensor::Empty({count}, {.dtype = DType::kI64});
    int64_t from = 0;
    for (const auto& of_shard : places)
      for (const int64_t place : of_shard)
        order.data<int64_t>()[place] = from++;
    return ops::Embedding(ops::Cat(parts, 0), order.To(parts[0].device()));
  }
  Tensor rows = Tensor::Empty({count, widths_[table]});
  for (size_t shard = 0; shard < parts.size(); ++shard) {
    const float* from = parts[shard].data<float>();
    for (const int64_t place : places[shard]) {
      std::copy_n(from, widths_[table],
                  rows.data<float>() + place * widths_[table]);
      from += widths_[table];
    }
  }
  return rows;
}

}  // namespace baton::dist

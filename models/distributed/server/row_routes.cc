// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_routes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/ops/indexing.h"

namespace baton::dist {
namespace {

// rows[places[i]] = part[i], on the CPU.
void CopyToPlaces(const Tensor& rows, const Tensor& part,
                  const Tensor& places) {
  const int64_t width = part.dim(1);
  const int64_t* place = places.data<int64_t>();
  const float* from = part.data<float>();
  float* to = rows.data<float>();
  for (int64_t i = 0; i < places.numel(); ++i, from += width)
    std::copy_n(from, width, to + place[i] * width);
}

}  // namespace

RowRoutes::Split::Split(const RowTableOptions& table, const Tensor& given,
                        int shards)
    : keys(Tensor::Empty({given.numel()}, {.dtype = DType::kI64})),
      places(Tensor::EmptyLike(keys)),
      first(static_cast<size_t>(shards) + 1) {
  const auto count = static_cast<size_t>(given.numel());
  const int64_t* key = given.data<int64_t>();
  std::vector<int32_t> shard_of(count);
  for (size_t i = 0; i < count; ++i) {
    shard_of[i] = ShardOfRow(table, key[i], shards);
    ++first[static_cast<size_t>(shard_of[i]) + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int64_t> next = first;
  auto* const called = keys.data<int64_t>();
  auto* const place = places.data<int64_t>();
  for (size_t i = 0; i < count; ++i) {
    const int64_t at = next[static_cast<size_t>(shard_of[i])]++;
    called[at] = table.rows > 0 ? key[i] / shards : key[i];
    place[at] = static_cast<int64_t>(i);
  }
}

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
  const Split split(table, PlacedOn(Device::Cpu(), rows.keys), shards());
  for (size_t shard = 0; shard < gradients_.size(); ++shard) {
    const Tensor keys = split.KeysOf(shard);
    if (keys.numel() == 0) continue;
    gradients_[shard].push_back(
        {.rows = {.table = rows.table,
                  .keys = keys,
                  .gradients = rows.gradients,
                  .rate = rows.rate},
         .places = split.PlacesOf(shard).To(rows.gradients.device())});
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
  if (shards() == 1) {
    keys_[0].push_back(rows);
    return;
  }
  pulled_.emplace_back(table, PlacedOn(Device::Cpu(), rows.keys), shards());
  for (size_t shard = 0; shard < keys_.size(); ++shard) {
    keys_[shard].push_back(
        {.table = rows.table, .keys = pulled_.back().KeysOf(shard)});
  }
}

JoinedRows::JoinedRows(std::shared_ptr<const RowRoutes> routes)
    : routes_(std::move(routes)), tables_(routes_->keys(0).size()) {
  const MutexLock lock(mutex_);
  for (Table& table : tables_)
    table.parts.resize(static_cast<size_t>(routes_->shards()));
}

// Rows that are all of one shard are the result as they are.
Tensor JoinedRows::PlaceFor(size_t table, size_t shard, const Tensor& rows) {
  const MutexLock lock(mutex_);
  Table& to = tables_[table];
  const int64_t count =
      routes_->pulled_.empty() ? rows.dim(0) : routes_->pulled_[table].count();
  if (rows.dim(0) == count) {
    to.joined = rows;
  } else if (rows.dim(0) == 0) {
    return {};
  } else if (rows.device().is_cuda()) {
    to.parts[shard] = rows;
  } else {
    if (!to.joined.defined()) to.joined = Tensor::Empty({count, rows.dim(1)});
    return to.joined;
  }
  return {};
}

void JoinedRows::Take(int shard, const std::vector<Tensor>& rows) {
  const auto from = static_cast<size_t>(shard);
  for (size_t table = 0; table < rows.size(); ++table) {
    const Tensor to = PlaceFor(table, from, rows[table]);
    if (to.defined())
      CopyToPlaces(to, rows[table], routes_->pulled_[table].PlacesOf(from));
  }
}

std::vector<Tensor> JoinedRows::All() const {
  const MutexLock lock(mutex_);
  std::vector<Tensor> all;
  for (size_t table = 0; table < tables_.size(); ++table) {
    const Table& of = tables_[table];
    all.push_back(of.joined.defined() ? of.joined : JoinOnGpu(table, of.parts));
    if (!of.joined.defined()) continue;
    // Where some shards are on CPUs, their rows are there by now.
    for (size_t shard = 0; shard < of.parts.size(); ++shard) {
      if (!of.parts[shard].defined()) continue;
      CopyToPlaces(of.joined, of.parts[shard].To(Device::Cpu()),
                   routes_->pulled_[table].PlacesOf(shard));
    }
  }
  return all;
}

Tensor JoinedRows::JoinOnGpu(size_t table,
                             const std::vector<Tensor>& of_shards) const {
  std::vector<Tensor> parts;
  for (const Tensor& part : of_shards)
    if (part.defined()) parts.push_back(part);
  const Tensor& places = routes_->pulled_[table].places;
  const Tensor order = Tensor::EmptyLike(places);
  for (int64_t i = 0; i < places.numel(); ++i)
    order.data<int64_t>()[places.data<int64_t>()[i]] = i;
  return ops::Embedding(ops::Cat(parts, 0), order.To(parts[0].device()));
}

}  // namespace baton::dist

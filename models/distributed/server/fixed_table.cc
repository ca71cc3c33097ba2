// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/fixed_table.h"

#include <utility>

#include "core/ops/indexing.h"
#include "core/ops/rows.h"
#include "core/status.h"

namespace baton::dist {

struct FixedTable::Sums final : PreparedRows {
  Sums(ops::Rows rows, double rate)
      : PreparedRows(rate), rows(std::move(rows)) {}
  const ops::Rows rows;
};

FixedTable::FixedTable(const RowTableOptions& options, int32_t shard,
                       int32_t shards, Device device,
                       const RowTableImage& image)
    : options_(options),
      shard_(shard),
      shards_(shards),
      rows_(options, RowsOfShard(options, shards), device),
      steps_(image.steps) {
  const int64_t all = rows_.values().dim(0);
  rows_.Begin(Tensor::Arange(all), KeysOf(all));
  if (!image.keys.defined()) return;
  const Tensor index = Tensor::EmptyLike(image.keys);
  for (int64_t i = 0; i < index.numel(); ++i) {
    const int64_t key = image.keys.data<int64_t>()[i];
    Require(key >= 0 && key < options.rows && key % shards == shard,
            "fixed_table", "row ", key, " is none of table ", options.name);
    index.data<int64_t>()[i] = key / shards;
  }
  rows_.Put(index, image.records);
}

Tensor FixedTable::KeysOf(int64_t rows) const {
  const Tensor keys = Tensor::Arange(rows);
  for (int64_t row = 0; row < rows; ++row)
    keys.data<int64_t>()[row] = row * shards_ + shard_;
  return keys;
}

int64_t FixedTable::rows_used() const {
  return (options_.rows - shard_ + shards_ - 1) / shards_;
}

RowTableImage FixedTable::Image() const {
  const int64_t rows = rows_used();
  return {.steps = steps_,
          .keys = KeysOf(rows),
          .records = rows_.Records(Tensor::Arange(rows))};
}

void FixedTable::Read(const Tensor& keys, const Tensor& rows) const {
  ops::EmbeddingInto(rows, rows_.values(), keys);
}

std::unique_ptr<const PreparedRows> FixedTable::Prepare(
    std::vector<RowGradients> gradients) const {
  const RowGradients all = JoinedOn(key_device(), device(), gradients);
  return std::make_unique<const Sums>(
      ops::Coalesce({.index = all.keys, .values = all.gradients},
                    rows_.values().dim(0)),
      all.rate);
}

void FixedTable::Step(const Steps& steps, double scale) {
  for (const PreparedRows* step : steps)
    rows_.Step(static_cast<const Sums*>(step)->rows,
               {.step = ++steps_, .rate = step->rate, .scale = scale});
}

}  // namespace baton::dist

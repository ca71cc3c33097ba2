// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/device_table.h"

#include <cstddef>
#include <utility>

#include "core/ops/indexing.h"
#include "core/ops/rows.h"
#include "core/parallel.h"
#include "models/distributed/server/distinct_keys.h"
#include "models/distributed/server/row_start.h"

namespace baton::dist {
namespace {

constexpr int64_t kLeastRows = 1024;  // for which there is always room
constexpr int64_t kKeysAhead = 32;    // that are prefetched at a time
constexpr int64_t kKeyGrain = 4096;   // the number of keys for which another
                                      // thread pays

}  // namespace

struct DeviceTable::Sums final : PreparedRows {
  Sums(Tensor keys, Tensor sums, double rate)
      : PreparedRows(rate), keys(std::move(keys)), sums(std::move(sums)) {}
  const Tensor keys, sums;
};

DeviceTable::DeviceTable(const RowTableOptions& options, int64_t limit,
                         Device device, const RowTableImage& image)
    : options_(options),
      keyed_(limit),
      rows_(options, kLeastRows, device),
      steps_(image.steps) {
  if (!image.keys.defined()) return;
  const Tensor index = Tensor::EmptyLike(image.keys);
  for (int64_t i = 0; i < index.numel(); ++i) {
    index.data<int64_t>()[i] =
        keyed_.FindOrAdd(image.keys.data<int64_t>()[i]).first;
  }
  rows_.GrowTo(keyed_.end());
  rows_.Put(index, image.records);
  keyed_.ForgetRest();
}

RowTableImage DeviceTable::Image() const {
  std::vector<int64_t> keys, rows;
  keyed_.ForEach([&](int64_t key, KeyedRows::Row row) {
    keys.push_back(key);
    rows.push_back(row);
  });
  return {.steps = steps_,
          .keys = Tensor::From(keys),
          .records = rows_.Records(Tensor::From(rows))};
}

// Rows that there are not are read as row 0, and then overwritten.
void DeviceTable::Read(const Tensor& keys, const Tensor& rows) const {
  const int64_t* key = keys.data<int64_t>();
  const Tensor index = Tensor::EmptyLike(keys);
  auto* const row = index.data<int64_t>();
  ParallelFor(keys.numel(), kKeyGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kKeysAhead < end) keyed_.Prefetch(key[i + kKeysAhead]);
      row[i] = keyed_.Find(key[i]);
    }
  });
  std::vector<int64_t> places, unknown;
  for (int64_t i = 0; i < keys.numel(); ++i) {
    if (row[i] != KeyedRows::kNone) continue;
    row[i] = 0;
    places.push_back(i);
    unknown.push_back(key[i]);
  }
  ops::EmbeddingInto(rows, rows_.values(), index.To(device()));
  if (unknown.empty()) return;
  ops::PutRowsInto(rows,
                   {Tensor::From(places).To(device()),
                    BegunRows(options_, Tensor::From(unknown)).To(device())});
}

void DeviceTable::Touch(const Tensor& keys) {
  const int64_t* key = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const KeyedRows::Row row = keyed_.Find(key[i]);
    if (row != KeyedRows::kNone) keyed_.Use(row);
  }
}

std::unique_ptr<const PreparedRows> DeviceTable::Prepare(
    std::vector<RowGradients> gradients) const {
  const RowGradients sums =
      SumOfKeys(JoinedOn(key_device(), device(), gradients));
  return std::make_unique<const Sums>(sums.keys, sums.gradients, sums.rate);
}

Tensor DeviceTable::RowsOf(const Tensor& keys) {
  const int64_t* key = keys.data<int64_t>();
  const int64_t count = keys.numel();
  const Tensor index = Tensor::EmptyLike(keys);
  std::vector<int64_t> new_rows, new_keys;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kKeysAhead < count) keyed_.Prefetch(key[i + kKeysAhead]);
    const auto [row, is_new] = keyed_.FindOrAdd(key[i]);
    index.data<int64_t>()[i] = row;
    if (!is_new) continue;
    new_rows.push_back(row);
    new_keys.push_back(key[i]);
  }
  rows_.GrowTo(keyed_.end());
  rows_.Begin(Tensor::From(new_rows), Tensor::From(new_keys));
  return index;
}

void DeviceTable::Step(const Steps& steps, double scale) {
  for (const PreparedRows* step : steps) {
    const auto& given = *static_cast<const Sums*>(step);
    const Tensor index = RowsOf(given.keys);
    rows_.Step({index.To(device()), given.sums},
               {.step = ++steps_, .rate = given.rate, .scale = scale});
    if (!keyed_.bounded()) continue;
    for (int64_t i = 0; i < index.numel(); ++i)
      keyed_.Use(static_cast<KeyedRows::Row>(index.data<int64_t>()[i]));
    keyed_.ForgetRest();
  }
}

}  // namespace baton::dist

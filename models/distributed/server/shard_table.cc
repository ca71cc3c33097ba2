// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard_table.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/ops/indexing.h"
#include "core/status.h"
#include "models/distributed/server/device_table.h"
#include "models/distributed/server/fixed_table.h"
#include "models/distributed/server/key_layout.h"
#include "models/distributed/server/row_table.h"

namespace baton::dist {
namespace {

absl::Status CheckNumbers(const RowTableOptions& table, const Tensor& keys,
                          int shards) {
  if (table.rows == 0 || keys.device().is_cuda()) return absl::OkStatus();
  const int64_t most = RowsOfShard(table, shards);
  const Tensor dense = keys.Contiguous();
  const int64_t* key = dense.data<int64_t>();
  const int64_t* end = key + dense.numel();
  const int64_t* wrong = std::find_if(
      key, end, [most](int64_t each) { return each < 0 || each >= most; });
  if (wrong == end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "row ", *wrong, " is none of the ", most, " of table ", table.name));
}

// A table's limit is divided evenly among the shards.
int64_t LimitOfShard(int64_t limit, int32_t shards) {
  return limit == 0 ? 0 : std::max<int64_t>(1, (limit + shards - 1) / shards);
}

}  // namespace

int ShardOfRow(const RowTableOptions& table, int64_t key, int shards) {
  return table.rows > 0 ? static_cast<int>(key % shards)
                        : ShardOfRow(key, shards);
}

absl::Status CheckRowKeys(const ServerOptions& options, int32_t table,
                          const Tensor& keys, int shards) {
  if (table < 0 || static_cast<size_t>(table) >= options.tables.size())
    return absl::InvalidArgumentError(absl::StrCat("no table ", table));
  if (!keys.defined() || keys.dtype() != DType::kI64 || keys.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keys of table ", options.tables[static_cast<size_t>(table)].name,
        " are i64 [N]"));
  }
  return CheckNumbers(options.tables[static_cast<size_t>(table)], keys, shards);
}

absl::Status CheckRowGradients(const ServerOptions& options,
                               const RowGradients& rows, int shards) {
  RETURN_IF_ERROR(CheckRowKeys(options, rows.table, rows.keys, shards));
  const RowTableOptions& table =
      options.tables[static_cast<size_t>(rows.table)];
  const Shape shape({rows.keys.numel(), table.width});
  if (rows.gradients.defined() && rows.gradients.dtype() == DType::kF32 &&
      rows.gradients.shape() == shape) {
    if (std::isfinite(rows.rate) && rows.rate >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the rate of table ", table.name, " cannot be multiplied ",
                     "by ", rows.rate));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of ", rows.keys.numel(), " rows of table ",
                   table.name, " are f32", shape.ToString()));
}

RowGradients JoinedOn(Device keys, Device device,
                      const std::vector<RowGradients>& gradients) {
  std::vector<Tensor> all_keys, all_gradients;
  for (const RowGradients& rows : gradients) {
    all_keys.push_back(PlacedOn(keys, rows.keys));
    all_gradients.push_back(PlacedOn(device, rows.gradients));
  }
  const auto joined = [](const std::vector<Tensor>& all) {
    return all.size() == 1 ? all[0] : ops::Cat(all, 0);
  };
  return {.table = gradients[0].table,
          .keys = joined(all_keys),
          .gradients = joined(all_gradients),
          .rate = gradients[0].rate};
}

double RateOf(const ops::StepRule& rule) {
  return std::visit([](const auto& options) { return options.lr; }, rule);
}

std::unique_ptr<ShardTable> ShardTable::Make(const RowTableOptions& options,
                                             int32_t shard, int32_t shards,
                                             Device device,
                                             const RowTableImage& image) {
  const Device place = options.in_host_memory ? Device::Cpu() : device;
  if (options.rows > 0)
    return std::make_unique<FixedTable>(options, shard, shards, place, image);
  const int64_t limit = LimitOfShard(options.limit, shards);
  if (place.is_cpu()) return std::make_unique<RowTable>(options, limit, image);
  return std::make_unique<DeviceTable>(options, limit, place, image);
}

int64_t ShardTable::RecordOf(const RowTableOptions& options) {
  const auto slots = UsedSlots(options.rule);
  return options.width *
         (1 + std::count_if(slots.begin(), slots.end(), [](const auto& slot) {
            return slot.name != nullptr;
          }));
}

}  // namespace baton::dist

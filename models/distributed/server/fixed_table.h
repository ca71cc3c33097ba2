// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/row_tensors.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// Rows 0 .. RowsOfShard - 1 in one tensor on any device; all exist from the
// beginning. On a GPU, a row that does not exist is read as NaN and is not
// stepped. Thread-compatible.
class FixedTable final : public ShardTable {
 public:
  FixedTable(const RowTableOptions& options, int32_t shard, int32_t shards,
             Device device, const RowTableImage& image = {});

  Device device() const override { return rows_.device(); }
  Device key_device() const override { return device(); }
  RowTableImage Image() const override;
  void Read(const Tensor& keys, const Tensor& rows) const override;
  void Touch(const Tensor&) override {}
  // Sums the gradients so that each row occurs once.
  std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const override;
  void Step(const Steps& steps, double scale) override;

 private:
  struct Sums;
  // Returns the keys in the table of the shard's first rows.
  Tensor KeysOf(int64_t rows) const;
  int64_t rows_used() const;

  const RowTableOptions options_;
  const int32_t shard_, shards_;
  RowTensors rows_;
  int64_t steps_;
};

}  // namespace baton::dist

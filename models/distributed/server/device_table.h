// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "models/distributed/server/keyed_rows.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/row_tensors.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// Rows with any keys on any device; which key has which row is known in host
// memory. It behaves like a RowTable. Thread-compatible.
class DeviceTable final : public ShardTable {
 public:
  // Keeps at most `limit` rows; 0: all.
  DeviceTable(const RowTableOptions& options, int64_t limit, Device device,
              const RowTableImage& image = {});

  Device device() const override { return rows_.device(); }
  Device key_device() const override { return Device::Cpu(); }
  RowTableImage Image() const override;
  void Read(const Tensor& keys, const Tensor& rows) const override;
  void Touch(const Tensor& keys) override;
  // Sums the gradients so that each key occurs once.
  std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const override;
  // Afterwards forgets rows beyond the limit.
  void Step(const Steps& steps, double scale) override;

 private:
  struct Sums;
  // Returns the rows of these keys, i64 [n]; makes those that there are not.
  Tensor RowsOf(const Tensor& keys);

  const RowTableOptions options_;
  KeyedRows keyed_;
  RowTensors rows_;
  int64_t steps_;
};

}  // namespace baton::dist

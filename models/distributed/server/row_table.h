// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/cpu/optimizer.h"
#include "core/shared_mutex.h"
#include "core/tensor.h"
#include "models/distributed/server/keyed_rows.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/row_work.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// Rows with any keys, in host memory, each with the optimizer's state beside
// it. A row exists from its first gradient on; before, and after it is
// forgotten, it reads as its initial value.
class RowTable final : public ShardTable {
 public:
  // Keeps at most `limit` rows; 0: all.
  RowTable(const RowTableOptions& options, int64_t limit,
           const RowTableImage& image = {});

  Device device() const override { return Device::Cpu(); }
  Device key_device() const override { return Device::Cpu(); }
  RowTableImage Image() const override;
  void Read(const Tensor& keys, const Tensor& rows) const override;
  void Touch(const Tensor& keys) override;
  // Finds the existing rows and sums the gradients of equal rows. In a bounded
  // table other steps may forget a row, so Step does all of this.
  std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const override;
  // Afterwards forgets rows beyond the limit.
  void Step(const Steps& steps, double scale) override;

 private:
  using Row = KeyedRows::Row;
  static constexpr Row kNone = KeyedRows::kNone;
  struct Named {
    int64_t key;
    const float* gradient;
  };
  struct Prepared;

  int64_t width() const { return options_.width; }
  int64_t Grain() const;  // rows
  float* Record(Row row) const;
  // Returns the record, and begins to load it into the caches; null if there is
  // none.
  const float* Find(int64_t key) const;
  void CopyOrBegin(const float* record, int64_t key, float* to) const;
  // Makes the row if there is none; `begin` writes the record of a new one.
  template <typename Begin>
  Row RowOf(int64_t key, Begin begin);
  void BeginRecord(int64_t key, float* record) const;
  void Find(const RowGradients& rows, Prepared& prepared) const;
  RowWork FindOrMake(const std::vector<Named>& named);
  void StepAndForget(const RowWork& work, const RowStep& by);
  void StepRows(const TouchedRow* begin, const TouchedRow* end,
                const RowStep& by) const;
  cpu::StepArrays ArraysOf(const TouchedRow& touched) const;

  const RowTableOptions options_;
  const std::vector<ops::StateSlot> slots_;
  const int64_t record_;  // number of elements: the value, then the state
  const int block_bits_;
  const int64_t rows_per_block_;  // a power of two
  // Guards what Prepare reads; only Step adds rows.
  mutable SharedMutex index_mutex_;
  KeyedRows keyed_;
  std::vector<Tensor> blocks_;
  std::vector<float*> block_data_;
  int64_t steps_ = 0;
};

}  // namespace baton::dist

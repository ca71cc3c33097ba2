// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/shared_mutex.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/row_index.h"
#include "models/distributed/server/row_work.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// Rows by any keys, in host memory, each with the optimizer's state beside it.
// A row is there from its first gradient on; before, and once it is forgotten,
// it reads as it begins.
class RowTable final : public ShardTable {
 public:
  // Keeps `limit` rows at most; 0: all.
  RowTable(const RowTableOptions& options, int64_t limit,
           const RowTableImage& image = {});
  int64_t size() const { return static_cast<int64_t>(row_of_.size()); }
  int64_t width() const { return options_.width; }
  bool bounded() const { return limit_ > 0; }
  int64_t steps() const { return steps_; }
  bool Has(int64_t key) const { return row_of_.Find(key) != kNone; }

  Device device() const override { return Device::Cpu(); }
  RowTableImage Image() const override;
  void Read(const Tensor& keys, const Tensor& rows) const override;
  void Touch(const Tensor& keys) override;
  // Finds the rows that are there and sums what is of the same row. In a
  // bounded table, where others' steps may end a row, Step does all of that.
  std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const override;
  // Then forgets what is too much.
  void Step(const Steps& steps, double scale) override;

 private:
  using Row = RowIndex::Row;
  static constexpr Row kNone = RowIndex::kNone;
  struct Named {
    int64_t key;
    const float* gradient;
  };
  // How far a step goes.
  struct StepRate {
    int64_t step;
    double scale;
  };
  struct Prepared;

  int64_t Grain() const;  // rows
  float* Record(Row row) const;
  // On its way to the caches; null where there is none.
  const float* Find(int64_t key) const;
  void CopyOrBegin(const float* record, int64_t key, float* to) const;
  Row NewRow(int64_t key);   // its record uninitialised
  Row MakeRow(int64_t key);  // as rows begin
  Row RowOf(int64_t key);    // which it makes, where it is not there
  void Find(const RowGradients& rows, Prepared& prepared) const;
  RowWork FindOrMake(const std::vector<Named>& named);
  void StepAndForget(const RowWork& work, const StepRate& rate);
  void StepRows(const TouchedRow* begin, const TouchedRow* end,
                const StepRate& rate) const;
  void StepRow(const TouchedRow& touched, const StepRate& rate) const;
  // The order of use.
  void Append(Row row);
  void Unlink(Row row);
  void Use(Row row);
  void ForgetRest();

  const RowTableOptions options_;
  const int64_t limit_;
  const std::vector<ops::StateSlot> slots_;
  const int64_t record_;  // elements: the value, then the state
  const int block_bits_;
  const int64_t rows_per_block_;  // a power of two
  // Between Prepare and Step, which alone adds rows.
  mutable SharedMutex index_mutex_;
  RowIndex row_of_;
  std::vector<Tensor> blocks_;
  std::vector<float*> block_data_;
  std::vector<int64_t> key_of_;
  std::vector<Row> free_;
  std::vector<Row> older_, newer_;  // of bounded tables
  Row oldest_ = kNone, newest_ = kNone;
  int64_t steps_ = 0;
};

}  // namespace baton::dist

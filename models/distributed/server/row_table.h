// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/row_index.h"

namespace baton::dist {

// What one trainer adds to rows of a table.
struct RowGradients {
  int32_t table = 0;  // in ServerOptions::tables
  Tensor keys;        // i64 [N]; a key may come several times
  Tensor gradients;   // f32 [N, width]
  static constexpr auto Fields() {
    return std::tuple{&RowGradients::table, &RowGradients::keys,
                      &RowGradients::gradients};
  }
};

// Rows that are wanted.
struct RowKeys {
  int32_t table = 0;
  Tensor keys;  // i64 [N]
  static constexpr auto Fields() {
    return std::tuple{&RowKeys::table, &RowKeys::keys};
  }
};

// InvalidArgument for what does not fit the tables of `options`.
absl::Status CheckRowKeys(const ServerOptions& options, int32_t table,
                          const Tensor& keys);
absl::Status CheckRowGradients(const ServerOptions& options,
                               const RowGradients& rows);
// Rows are kept, keys and gradients read, in host memory.
inline Tensor RowsOnHost(const Tensor& tensor) {
  return tensor.To(Device::Cpu()).Contiguous();
}

// All that a table has; without keys: nothing yet.
struct RowTableImage {
  int64_t steps = 0;
  Tensor keys{};     // i64 [N]; of a bounded table from the first to forget on
  Tensor records{};  // f32 [N, width x (1 + the rule's state)], the value first
  static constexpr auto Fields() {
    using I = RowTableImage;
    return std::tuple{&I::steps, &I::keys, &I::records};
  }
};

// The rows of an embedding table that one shard has, in host memory, each with
// the optimizer's state beside it. A row is there from its first gradient on;
// before, and once it is forgotten, it reads as it begins. Equal calls in equal
// order leave equal tables. Thread-compatible.
class RowTable {
 public:
  // Keeps `limit` rows at most; 0: all. Begins with the rows of an image, whose
  // records have the shape that the options say.
  RowTable(const RowTableOptions& options, int64_t limit,
           const RowTableImage& image = {});
  // A copy.
  RowTableImage Image() const;
  // Elements of a row with the state of its rule.
  static int64_t RecordOf(const RowTableOptions& options);

  int64_t size() const { return static_cast<int64_t>(row_of_.size()); }
  int64_t width() const { return options_.width; }
  bool bounded() const { return limit_ > 0; }
  int64_t steps() const { return steps_; }
  bool Has(int64_t key) const { return row_of_.Find(key) != kNone; }

  // f32 [N, width] of keys i64 [N]; tensors of the CPU, contiguous.
  void Read(const Tensor& keys, const Tensor& rows) const;
  // These were used: what is forgotten first are others.
  void Touch(const Tensor& keys);
  // One step of each row that is named, by the sum of its gradients in the
  // order given, multiplied by `scale`. Then forgets what is too much.
  void Step(const std::vector<RowGradients>& gradients, double scale);

 private:
  using Row = RowIndex::Row;
  static constexpr Row kNone = RowIndex::kNone;
  // What a step has to do to a row.
  struct Touched {
    Row row;
    const float* gradient;
    int32_t sum = -1;  // where the gradient is one of several: which
  };

  int64_t Grain() const;  // rows
  float* Record(Row row) const;
  // On its way to the caches; null where there is none.
  const float* Find(int64_t key) const;
  void CopyOrBegin(const float* record, int64_t key, float* to) const;
  Row NewRow(int64_t key);   // its record uninitialised
  Row MakeRow(int64_t key);  // as rows begin
  void Begin(int64_t key, float* value) const;
  class Places;

  Row RowOf(int64_t key);  // which it makes, where it is not there
  std::vector<Touched> Gather(const std::vector<RowGradients>& gradients,
                              std::vector<std::vector<float>>& sums);
  void AddTo(Touched& touched, const float* gradient,
             std::vector<std::vector<float>>& sums) const;
  void Prefetch(Row row) const;
  void StepRow(const Touched& touched, double scale) const;
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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"

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
  bool Has(int64_t key) const { return row_of_.contains(key); }

  // f32 [N, width] of keys i64 [N]; tensors of the CPU, contiguous.
  void Read(const Tensor& keys, const Tensor& rows) const;
  // These were used: what is forgotten first are others.
  void Touch(const Tensor& keys);
  // One step of each row that is named, by the sum of its gradients in the
  // order given, multiplied by `scale`. Then forgets what is too much.
  void Step(const std::vector<RowGradients>& gradients, double scale);

 private:
  using Row = int32_t;
  static constexpr Row kNone = -1;
  // What a step has to do to a row.
  struct Touched {
    Row row;
    const float* gradient;
    int32_t sum = -1;  // where the gradient is one of several: which
  };

  float* Record(Row row) const;
  Row NewRow(int64_t key);   // its record uninitialised
  Row MakeRow(int64_t key);  // as rows begin
  void Begin(int64_t key, float* value) const;
  std::vector<Touched> Gather(const std::vector<RowGradients>& gradients,
                              std::vector<std::vector<float>>& sums);
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
  absl::flat_hash_map<int64_t, Row> row_of_;
  std::vector<Tensor> blocks_;
  std::vector<float*> block_data_;
  std::vector<int64_t> key_of_;
  std::vector<Row> free_;
  std::vector<Row> older_, newer_;  // of bounded tables
  Row oldest_ = kNone, newest_ = kNone;
  // By row: the step that named it last, and its place among those.
  std::vector<int64_t> named_by_;
  std::vector<int32_t> place_;
  int64_t steps_ = 0;
};

}  // namespace baton::dist

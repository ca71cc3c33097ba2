// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "models/distributed/server/options.h"

namespace baton::dist {

// The gradients of one trainer for rows of a table.
struct RowGradients {
  int32_t table = 0;  // index in ServerOptions::tables
  Tensor keys;        // i64 [N]; a key may occur several times
  Tensor gradients;   // f32 [N, width]
  // A factor of the learning rate of the table's rule, such as a schedule's.
  // Where gradients of several trainers make one step, the first one's counts.
  double rate = 1;
  static constexpr auto Fields() {
    using R = RowGradients;
    return std::tuple{&R::table, &R::keys, &R::gradients, &R::rate};
  }
};

// The rows that a trainer pulls.
struct RowKeys {
  int32_t table = 0;
  Tensor keys;  // i64 [N]
  static constexpr auto Fields() {
    return std::tuple{&RowKeys::table, &RowKeys::keys};
  }
};

// Returns the shard of a row. Rows of tables of a fixed size are assigned
// round-robin; sent to their shard, their key is key / shards.
int ShardOfRow(const RowTableOptions& table, int64_t key, int shards);
// Returns the rows at each shard of a table of a fixed size; some shards may
// use one less.
inline int64_t RowsOfShard(const RowTableOptions& table, int shards) {
  return (table.rows + shards - 1) / shards;
}

// Returns InvalidArgument for what does not fit the tables of `options`, or one
// of the `shards` parts of them. Keys on a GPU are not checked, because reading
// them would wait for the GPU.
absl::Status CheckRowKeys(const ServerOptions& options, int32_t table,
                          const Tensor& keys, int shards = 1);
absl::Status CheckRowGradients(const ServerOptions& options,
                               const RowGradients& rows, int shards = 1);

// Returns a dense tensor on `device`.
inline Tensor PlacedOn(Device device, const Tensor& tensor) {
  return tensor.To(device).Contiguous();
}

// The whole state of a table; without keys it is empty.
struct RowTableImage {
  int64_t steps = 0;
  Tensor keys{};  // i64 [N]; in a bounded table, ordered from the first to be
                  // forgotten
  Tensor records{};  // f32 [N, width x (1 + the rule's state)], the value first
  static constexpr auto Fields() {
    using I = RowTableImage;
    return std::tuple{&I::steps, &I::keys, &I::records};
  }
};

// The gradients of one table, ready for its Step. Each kind of table has its
// own subclass.
struct PreparedRows {
  explicit PreparedRows(double rate) : rate(rate) {}
  virtual ~PreparedRows() = default;
  const double rate;  // that of RowGradients
};

// The number of a step, and factors of the rule's learning rate and of the
// gradients.
struct RowStep {
  int64_t step;
  double rate, scale;
};

// Returns these gradients, which are some, as one, with keys and gradients on
// these devices.
RowGradients JoinedOn(Device keys, Device device,
                      const std::vector<RowGradients>& gradients);
// Returns the learning rate of a rule.
double RateOf(const ops::StepRule& rule);

// The rows of an embedding table at one shard, with the optimizer's state.
// Equal calls in equal order leave equal tables. Any thread may call Prepare at
// any time; otherwise thread-compatible.
class ShardTable {
 public:
  // Makes the table that the options ask for, on `device` unless it is to be in
  // host memory: a FixedTable, or for rows with any keys a RowTable on the CPU
  // and a DeviceTable elsewhere. It starts with the rows of `image`, whose
  // records must have the shape that the options imply.
  static std::unique_ptr<ShardTable> Make(const RowTableOptions& options,
                                          int32_t shard, int32_t shards,
                                          Device device,
                                          const RowTableImage& image = {});
  virtual ~ShardTable() = default;
  // The number of elements of a row with the state of its rule.
  static int64_t RecordOf(const RowTableOptions& options);

  // The device where gradients are read and rows are written, and that where
  // keys are read. Any thread may call these at any time.
  virtual Device device() const = 0;
  virtual Device key_device() const = 0;
  // Returns a copy in host memory.
  virtual RowTableImage Image() const = 0;
  // Reads the rows of `keys`, i64 [N], into `rows`, f32 [N, width]; both must
  // be dense and on the table's devices.
  virtual void Read(const Tensor& keys, const Tensor& rows) const = 0;
  // Marks these rows as used, so that others are forgotten first.
  virtual void Touch(const Tensor& keys) = 0;
  // Returns the gradients prepared for Step of this table; does as much of the
  // work as may run concurrently with other steps.
  virtual std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const = 0;
  // Executes the steps in order. Each steps the rows that it names by the sum
  // of their gradients, in the given order, multiplied by `scale`.
  using Steps = std::vector<const PreparedRows*>;
  virtual void Step(const Steps& steps, double scale) = 0;
};

}  // namespace baton::dist

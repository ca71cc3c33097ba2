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

// Whose row a key is. Those of tables of a fixed size are dealt out in turn,
// and travel as what they are at their shard: key / shards.
int ShardOfRow(const RowTableOptions& table, int64_t key, int shards);
// Of a table of a fixed size: at each shard, the last of which may use one
// less.
inline int64_t RowsOfShard(const RowTableOptions& table, int shards) {
  return (table.rows + shards - 1) / shards;
}

// InvalidArgument for what does not fit the tables of `options`, or one of so
// many shards of them. Numbers on a GPU, where to look would be to wait, are
// not looked at.
absl::Status CheckRowKeys(const ServerOptions& options, int32_t table,
                          const Tensor& keys, int shards = 1);
absl::Status CheckRowGradients(const ServerOptions& options,
                               const RowGradients& rows, int shards = 1);

// Dense, and there.
inline Tensor PlacedOn(Device device, const Tensor& tensor) {
  return tensor.To(device).Contiguous();
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

// Gradients of one table as its Step takes them. Whoever makes it says what it
// holds.
class PreparedRows {
 public:
  virtual ~PreparedRows() = default;
};

// The rows of an embedding table that one shard has, with the optimizer's
// state. Equal calls in equal order leave equal tables. Prepare may be called
// at any time, on any thread; the others are thread-compatible.
class ShardTable {
 public:
  // What the options say: a RowTable in host memory, or a FixedTable on
  // `device`. Begins with the rows of an image, whose records have the shape
  // that the options say.
  static std::unique_ptr<ShardTable> Make(const RowTableOptions& options,
                                          int32_t shard, int32_t shards,
                                          Device device,
                                          const RowTableImage& image = {});
  virtual ~ShardTable() = default;
  // Elements of a row with the state of its rule.
  static int64_t RecordOf(const RowTableOptions& options);

  // Where keys and gradients are read, and rows are given.
  virtual Device device() const = 0;
  // A copy, in host memory.
  virtual RowTableImage Image() const = 0;
  // f32 [N, width] of keys i64 [N], all dense and on the table's device.
  virtual void Read(const Tensor& keys, const Tensor& rows) const = 0;
  // These were used: what is forgotten first are others.
  virtual void Touch(const Tensor& keys) = 0;
  // What Step takes of these, as much as can be done of it beside other steps.
  // It is of this table alone.
  virtual std::unique_ptr<const PreparedRows> Prepare(
      std::vector<RowGradients> gradients) const = 0;
  // One step after the other, each of the rows that it names, by the sum of its
  // gradients in the order given, multiplied by `scale`.
  using Steps = std::vector<const PreparedRows*>;
  virtual void Step(const Steps& steps, double scale) = 0;
};

}  // namespace baton::dist

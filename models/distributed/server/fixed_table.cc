// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/fixed_table.h"

#include <algorithm>
#include <utility>

#include "core/ops/indexing.h"
#include "core/ops/optimizer.h"
#include "core/ops/rows.h"
#include "core/parallel.h"
#include "core/status.h"
#include "models/distributed/server/row_start.h"

namespace baton::dist {
namespace {

constexpr int64_t kRowGrain = 1024;  // the number of rows for which another
                                     // thread pays

// Copies columns [at, at + width) of the records to rows `index` of `whole`.
void PutColumns(const Tensor& records, int64_t at, const Tensor& index,
                const Tensor& whole) {
  const int64_t width = whole.dim(1), record = records.dim(1);
  const float* from = records.data<float>() + at;
  for (const int64_t row : index.ToVector<int64_t>()) {
    std::copy_n(from, width, whole.data<float>() + row * width);
    from += record;
  }
}

}  // namespace

struct FixedTable::Sums final : PreparedRows {
  explicit Sums(ops::Rows rows) : rows(std::move(rows)) {}
  const ops::Rows rows;
};

FixedTable::FixedTable(const RowTableOptions& options, int32_t shard,
                       int32_t shards, Device device,
                       const RowTableImage& image)
    : options_(options),
      shard_(shard),
      shards_(shards),
      values_(Tensor::Empty({RowsOfShard(options, shards), options.width})),
      steps_(image.steps) {
  ParallelFor(values_.dim(0), kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      BeginRow(options_, KeyOf(row),
               values_.data<float>() + row * options_.width);
  });
  Tensor index;  // places of the image's rows
  if (image.keys.defined()) {
    index = Tensor::EmptyLike(image.keys);
    for (int64_t i = 0; i < index.numel(); ++i) {
      const int64_t key = image.keys.data<int64_t>()[i];
      Require(key >= 0 && key < options.rows && key % shards == shard,
              "fixed_table", "row ", key, " is none of table ", options.name);
      index.data<int64_t>()[i] = key / shards;
    }
    PutColumns(image.records, 0, index, values_);
  }
  int64_t column = options.width;
  for (const ops::StateSlot& slot : UsedSlots(options.rule)) {
    state_.emplace_back();
    if (slot.name == nullptr) continue;
    Tensor& state = state_.back();
    state = Tensor::Full(values_.shape(), slot.initial);
    if (index.defined()) PutColumns(image.records, column, index, state);
    column += options.width;
    state = state.To(device);
  }
  values_ = values_.To(device);
}

int64_t FixedTable::rows_used() const {
  return (options_.rows - shard_ + shards_ - 1) / shards_;
}

RowTableImage FixedTable::Image() const {
  const int64_t rows = rows_used();
  RowTableImage image{.steps = steps_,
                      .keys = Tensor::Empty({rows}, {.dtype = DType::kI64}),
                      .records = Tensor::Empty({rows, RecordOf(options_)})};
  for (int64_t row = 0; row < rows; ++row)
    image.keys.data<int64_t>()[row] = KeyOf(row);
  int64_t column = 0;
  const auto add = [&](const Tensor& whole) {
    image.records.Slice(1, column, column + options_.width)
        .CopyFrom(whole.Slice(0, 0, rows).To(Device::Cpu()));
    column += options_.width;
  };
  add(values_);
  for (const Tensor& state : state_)
    if (state.defined()) add(state);
  return image;
}

void FixedTable::Read(const Tensor& keys, const Tensor& rows) const {
  ops::EmbeddingInto(rows, values_, keys);
}

std::unique_ptr<const PreparedRows> FixedTable::Prepare(
    std::vector<RowGradients> gradients) const {
  std::vector<Tensor> keys, rows;
  for (const RowGradients& given : gradients) {
    keys.push_back(PlacedOn(device(), given.keys));
    rows.push_back(PlacedOn(device(), given.gradients));
  }
  const bool is_one = gradients.size() == 1;
  return std::make_unique<const Sums>(
      ops::Coalesce({.index = is_one ? keys[0] : ops::Cat(keys, 0),
                     .values = is_one ? rows[0] : ops::Cat(rows, 0)},
                    values_.dim(0)));
}

void FixedTable::Step(const Steps& steps, double scale) {
  ops::StepTarget target{.value = values_, .grad = {}, .state = state_};
  if (scale != 1) {
    target.scale =
        Tensor::Full({}, scale, {.dtype = DType::kF64, .device = device()});
  }
  for (const PreparedRows* step : steps) {
    const ops::Rows& sums = static_cast<const Sums*>(step)->rows;
    target.grad = sums.values;
    target.rows = sums.index;
    target.step = ++steps_;
    ops::OptimizerStep({{.targets = {target}, .rule = options_.rule}});
  }
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_tensors.h"

#include <algorithm>
#include <cstddef>

#include "core/ops/indexing.h"
#include "core/ops/optimizer.h"
#include "models/distributed/server/row_start.h"

namespace baton::dist {
namespace {

// Rows move between host and device in pieces, so that a copy of a whole table
// does not need its memory twice.
constexpr int64_t kPieceElements = 16 << 20;

// Calls fn(begin, end) for pieces of [0, rows).
template <typename Fn>
void ForEachPiece(int64_t rows, int64_t width, Fn fn) {
  const int64_t piece = std::max<int64_t>(1, kPieceElements / width);
  for (int64_t begin = 0; begin < rows; begin += piece)
    fn(begin, std::min(begin + piece, rows));
}

}  // namespace

RowTensors::RowTensors(const RowTableOptions& options, int64_t rows,
                       Device device)
    : options_(options),
      slots_(UsedSlots(options.rule)),
      device_(device),
      values_(Tensor::Empty({rows, options.width}, {.device = device})) {
  for (const ops::StateSlot& slot : slots_) {
    state_.push_back(slot.name == nullptr ? Tensor()
                                          : Tensor::EmptyLike(values_));
  }
}

template <typename Fn>
void RowTensors::ForEachTensor(Fn fn) const {
  int64_t column = 0;
  fn(values_, column);
  for (const Tensor& state : state_)
    if (state.defined()) fn(state, column += options_.width);
}

void RowTensors::GrowTo(int64_t rows) {
  const int64_t before = values_.dim(0);
  if (rows <= before) return;
  const Shape shape({std::max(rows, before + before / 2), options_.width});
  const auto grow = [&](Tensor& tensor) {
    const Tensor grown = Tensor::Empty(shape, {.device = device_});
    grown.Slice(0, 0, before).CopyFrom(tensor);
    tensor = grown;
  };
  grow(values_);
  for (Tensor& state : state_)
    if (state.defined()) grow(state);
}

void RowTensors::Begin(const Tensor& rows, const Tensor& keys) {
  ForEachPiece(rows.numel(), options_.width, [&](int64_t begin, int64_t end) {
    const Tensor index = rows.Slice(0, begin, end).To(device_);
    const Tensor values = BegunRows(options_, keys.Slice(0, begin, end));
    ops::PutRowsInto(values_, {index, values.To(device_)});
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!state_[slot].defined()) continue;
      const Tensor initial = Tensor::Full(values.shape(), slots_[slot].initial,
                                          {.device = device_});
      ops::PutRowsInto(state_[slot], {index, initial});
    }
  });
}

void RowTensors::Put(const Tensor& rows, const Tensor& records) {
  ForEachPiece(rows.numel(), options_.width, [&](int64_t begin, int64_t end) {
    const Tensor index = rows.Slice(0, begin, end).To(device_);
    const Tensor piece = records.Slice(0, begin, end);
    ForEachTensor([&](const Tensor& tensor, int64_t column) {
      const Tensor part = piece.Slice(1, column, column + options_.width);
      ops::PutRowsInto(tensor, {index, PlacedOn(device_, part)});
    });
  });
}

Tensor RowTensors::Records(const Tensor& rows) const {
  const Tensor records =
      Tensor::Empty({rows.numel(), ShardTable::RecordOf(options_)});
  ForEachPiece(rows.numel(), options_.width, [&](int64_t begin, int64_t end) {
    const Tensor index = rows.Slice(0, begin, end).To(device_);
    const Tensor piece = records.Slice(0, begin, end);
    ForEachTensor([&](const Tensor& tensor, int64_t column) {
      piece.Slice(1, column, column + options_.width)
          .CopyFrom(ops::Embedding(tensor, index).To(Device::Cpu()));
    });
  });
  return records;
}

void RowTensors::Step(const ops::Rows& gradients, const RowStep& by) {
  const auto unless_1 = [&](double factor, double number) {
    return factor == 1
               ? Tensor()
               : Tensor::Full({}, number,
                              {.dtype = DType::kF64, .device = device_});
  };
  ops::OptimizerStep(
      {{.targets = {{.value = values_,
                     .grad = gradients.values,
                     .state = state_,
                     .step = by.step,
                     .rows = gradients.index,
                     .rows_apart = true,
                     .rate = unless_1(by.rate, by.rate * RateOf(options_.rule)),
                     .scale = unless_1(by.scale, by.scale)}},
        .rule = options_.rule}});
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard_state.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/ops/multi_tensor.h"
#include "core/ops/optimizer.h"
#include "core/ops/rows.h"
#include "core/status.h"
#include "models/distributed/server/compression.h"

namespace baton::dist {
namespace {

// Elements that are summed and stepped at a time: they stay in the caches
// between the passes over them.
constexpr int64_t kStride = 256 << 10;

// A table's limit is shared evenly by the shards.
int64_t LimitOfShard(int64_t limit, int32_t shards) {
  return limit == 0 ? 0 : std::max<int64_t>(1, (limit + shards - 1) / shards);
}

}  // namespace

ShardState::ShardState(const ShardSpec& spec, Device device)
    : options_(spec.options),
      device_(device),
      clocks_(spec.options, spec.image.clocks),
      steps_(spec.image.steps),
      round_(spec.image.round) {
  const ShardImage& image = spec.image;
  const Tensor values = image.values.To(device).Contiguous();
  for (const ops::StateSlot& slot : UsedSlots(options_.rule)) {
    const size_t at = slots_.size();
    if (slot.name == nullptr) {
      slots_.emplace_back();
    } else if (at < image.slots.size()) {  // which others may have, too
      slots_.push_back(image.slots[at].To(device).Clone());
    } else {
      slots_.push_back(
          Tensor::Full(values.shape(), slot.initial, {.device = device}));
    }
  }
  const MutexLock lock(values_mutex_);
  values_ = {.version = image.version, .values = values};
  const MutexLock rows_lock(rows_mutex_);
  for (const RowTableOptions& table : options_.tables) {
    const size_t at = tables_.size();
    tables_.emplace_back(
        table, LimitOfShard(table.limit, spec.shards),
        at < image.tables.size() ? image.tables[at] : RowTableImage{});
  }
}

ShardImage ShardState::Image() const {
  const DenseValues now = values();
  ShardImage image{.version = now.version,
                   .values = now.values,
                   .steps = steps_,
                   .clocks = clocks_.readings(),
                   .round = round_};
  for (const Tensor& slot : slots_)
    image.slots.push_back(slot.defined() ? slot.Clone() : slot);
  const MutexLock lock(rows_mutex_);
  for (const RowTable& table : tables_) image.tables.push_back(table.Image());
  return image;
}

absl::Status ShardState::Check(const Gradients& gradients) const {
  RETURN_IF_ERROR(CheckDense(gradients));
  for (const RowGradients& rows : gradients.rows)
    RETURN_IF_ERROR(CheckRowGradients(options_, rows));
  return absl::OkStatus();
}

absl::Status ShardState::CheckDense(const Gradients& gradients) const {
  const Tensor& dense = gradients.dense;
  const Tensor& index = gradients.index;
  if (!dense.defined()) return absl::OkStatus();
  const Shape shape = values().values.shape();
  if (index.defined()) {
    if (dense.dtype() != DType::kF32 || dense.rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "some gradients of a shard are f32 [n], not ", dense.ToString()));
    }
    return CatchErrors([&] {
      ops::RequireRows(
          "push", {shape.numel(), 1},
          {.index = index, .values = dense.Reshape({dense.numel(), 1})});
    });
  }
  if (dense.shape() == shape &&
      (dense.dtype() == DType::kF32 || dense.dtype() == DType::kBF16))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of this shard are f32 or bf16", shape.ToString(),
                   ", not ", dense.ToString()));
}

void ShardState::Apply(const ShardUpdate& update) {
  switch (update.kind) {
    case ShardUpdate::Kind::kJoin:
      clocks_.Join(update.trainer, update.joining);
      break;
    case ShardUpdate::Kind::kLeave:
      clocks_.Leave(update.trainer);
      break;
    case ShardUpdate::Kind::kPush:
      ApplyPush(update);
      break;
    case ShardUpdate::Kind::kTouch:
      ApplyTouch(update.gradients);
      break;
  }
  // Whoever left may have been the last that the round waited for.
  if (options_.mode != Consistency::kBulkSynchronous || !clocks_.RoundIsWhole())
    return;
  std::vector<Gradients> all;
  for (auto& [rank, gradients] : round_) all.push_back(std::move(gradients));
  round_.clear();
  StepBy(all, options_.average ? 1.0 / static_cast<double>(all.size()) : 1.0);
  clocks_.EndRound();
}

void ShardState::ApplyPush(const ShardUpdate& update) {
  const ServedTrainer* trainer = clocks_.Find(update.trainer);
  if (trainer == nullptr) return;
  if (options_.mode == Consistency::kBulkSynchronous) {
    round_[{trainer->rank, update.trainer}] = update.gradients;
  } else {
    StepBy({update.gradients}, 1);
  }
  clocks_.Count(update.trainer, update.sequence);
}

void ShardState::ApplyTouch(const Gradients& used) {
  const MutexLock lock(rows_mutex_);
  for (const RowGradients& rows : used.rows)
    tables_[static_cast<size_t>(rows.table)].Touch(RowsOnHost(rows.keys));
}

void ShardState::StepBy(const std::vector<Gradients>& gradients, double scale) {
  std::vector<Tensor> dense;
  for (const Gradients& given : gradients)
    if (given.dense.defined())
      dense.push_back(Expand(given, values().values.numel(), device_));
  StepRows(gradients, scale);
  StepDense(dense, scale);
}

void ShardState::StepDense(const std::vector<Tensor>& gradients, double scale) {
  const DenseValues before = values();
  DenseValues after{.version = before.version + 1, .values = before.values};
  if (!gradients.empty()) {
    ++steps_;
    after.values = Tensor::EmptyLike(before.values);
    const Tensor factor =
        scale == 1 ? Tensor()
                   : Tensor::Full({}, scale,
                                  {.dtype = DType::kF64, .device = device_});
    const int64_t all = before.values.numel();
    Tensor sum;
    for (int64_t begin = 0; begin < all; begin += kStride) {
      const int64_t end = std::min(begin + kStride, all);
      const auto part = [&](const Tensor& whole) {
        return whole.defined() ? whole.Slice(0, begin, end) : whole;
      };
      ops::StepTarget target{.value = part(after.values),
                             .grad = part(gradients[0]),
                             .step = steps_,
                             .scale = factor};
      target.value.CopyFrom(part(before.values));
      if (gradients.size() > 1) {
        if (!sum.defined()) sum = target.grad.Clone();
        const Tensor added = sum.Slice(0, 0, end - begin);
        if (begin > 0) added.CopyFrom(target.grad);
        for (size_t i = 1; i < gradients.size(); ++i)
          ops::AddIntoMany({added}, {part(gradients[i])});
        target.grad = added;
      }
      for (const Tensor& slot : slots_) target.state.push_back(part(slot));
      ops::OptimizerStep({{.targets = {target}, .rule = options_.rule}});
    }
  }
  const MutexLock lock(values_mutex_);
  values_ = after;
}

void ShardState::StepRows(const std::vector<Gradients>& gradients,
                          double scale) {
  for (size_t table = 0; table < options_.tables.size(); ++table) {
    std::vector<RowGradients> of_table;
    for (const Gradients& given : gradients) {
      for (const RowGradients& rows : given.rows) {
        if (static_cast<size_t>(rows.table) != table) continue;
        of_table.push_back({.table = rows.table,
                            .keys = RowsOnHost(rows.keys),
                            .gradients = RowsOnHost(rows.gradients)});
      }
    }
    if (of_table.empty()) continue;
    const MutexLock lock(rows_mutex_);
    tables_[table].Step(of_table, scale);
  }
}

DenseValues ShardState::values() const {
  const MutexLock lock(values_mutex_);
  return values_;
}

Tensor ShardState::ReadRows(int32_t table, const Tensor& keys) const {
  const Tensor on_host = RowsOnHost(keys);
  const MutexLock lock(rows_mutex_);
  const RowTable& rows = tables_[static_cast<size_t>(table)];
  Tensor out = Tensor::Empty({keys.numel(), rows.width()});
  rows.Read(on_host, out);
  return out;
}

bool ShardState::IsBounded(int32_t table) const {
  return options_.tables[static_cast<size_t>(table)].limit > 0;
}

int64_t ShardState::RowCount(int32_t table) const {
  const MutexLock lock(rows_mutex_);
  return tables_[static_cast<size_t>(table)].size();
}

}  // namespace baton::dist

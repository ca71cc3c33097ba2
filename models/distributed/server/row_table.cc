// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/cpu/optimizer.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "core/status.h"

namespace baton::dist {
namespace {

constexpr int64_t kRowsPerBlock = 4096;
constexpr int64_t kGrain = 256;  // rows
constexpr int64_t kAhead = 8;    // lookups that are under way at a time
constexpr int64_t kLine = 64 / sizeof(float);  // of a cache

// In [0, 1).
float UnitFloat(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

void ToNormal(float& a, float& b) {
  const float radius = std::sqrt(-2 * std::log(1 - a));
  const float angle = 2 * std::numbers::pi_v<float> * b;
  a = radius * std::cos(angle);
  b = radius * std::sin(angle);
}

int64_t StateCount(const std::vector<ops::StateSlot>& slots) {
  return std::count_if(slots.begin(), slots.end(),
                       [](const auto& slot) { return slot.name != nullptr; });
}

}  // namespace

absl::Status CheckRowKeys(const ServerOptions& options, int32_t table,
                          const Tensor& keys) {
  if (table < 0 || static_cast<size_t>(table) >= options.tables.size())
    return absl::InvalidArgumentError(absl::StrCat("no table ", table));
  if (!keys.defined() || keys.dtype() != DType::kI64 || keys.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keys of table ", options.tables[static_cast<size_t>(table)].name,
        " are i64 [N]"));
  }
  return absl::OkStatus();
}

absl::Status CheckRowGradients(const ServerOptions& options,
                               const RowGradients& rows) {
  RETURN_IF_ERROR(CheckRowKeys(options, rows.table, rows.keys));
  const RowTableOptions& table =
      options.tables[static_cast<size_t>(rows.table)];
  const Shape shape({rows.keys.numel(), table.width});
  if (rows.gradients.defined() && rows.gradients.dtype() == DType::kF32 &&
      rows.gradients.shape() == shape)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of ", rows.keys.numel(), " rows of table ",
                   table.name, " are f32", shape.ToString()));
}

RowTable::RowTable(const RowTableOptions& options, int64_t limit,
                   const RowTableImage& image)
    : options_(options),
      limit_(limit),
      slots_(UsedSlots(options.rule)),
      record_(RecordOf(options)),
      steps_(image.steps) {
  if (!image.keys.defined()) return;
  const int64_t* key = image.keys.data<int64_t>();
  const float* record = image.records.data<float>();
  for (int64_t i = 0; i < image.keys.numel(); ++i, record += record_) {
    const Row row = NewRow(key[i]);
    row_of_[key[i]] = row;
    std::copy_n(record, record_, Record(row));
  }
  if (bounded()) ForgetRest();
}

int64_t RowTable::RecordOf(const RowTableOptions& options) {
  return options.width * (1 + StateCount(UsedSlots(options.rule)));
}

RowTableImage RowTable::Image() const {
  RowTableImage image{.steps = steps_,
                      .keys = Tensor::Empty({size()}, {.dtype = DType::kI64}),
                      .records = Tensor::Empty({size(), record_})};
  int64_t* key = image.keys.data<int64_t>();
  float* record = image.records.data<float>();
  const auto add = [&](Row row) {
    *key++ = key_of_[static_cast<size_t>(row)];
    record = std::copy_n(Record(row), record_, record);
  };
  if (bounded()) {
    for (Row row = oldest_; row != kNone;
         row = newer_[static_cast<size_t>(row)])
      add(row);
  } else {
    for (const auto& [of_key, row] : row_of_) add(row);
  }
  return image;
}

float* RowTable::Record(Row row) const {
  return block_data_[static_cast<size_t>(row / kRowsPerBlock)] +
         (row % kRowsPerBlock) * record_;
}

void RowTable::Begin(int64_t key, float* value) const {
  const auto scale = static_cast<float>(options_.scale);
  const auto bits = static_cast<uint64_t>(key);
  for (int64_t begin = 0; begin < width(); begin += 4) {
    std::array<float, 4> four{};
    if (options_.start != RowStart::kZero) {
      const auto random = Philox(
          {static_cast<uint32_t>(begin / 4), 0, static_cast<uint32_t>(bits),
           static_cast<uint32_t>(bits >> 32)},
          {static_cast<uint32_t>(options_.seed),
           static_cast<uint32_t>(options_.seed >> 32)});
      for (size_t i = 0; i < 4; ++i) four[i] = UnitFloat(random[i]);
    }
    if (options_.start == RowStart::kUniform) {
      for (float& x : four) x = scale * (2 * x - 1);
    } else if (options_.start == RowStart::kNormal) {
      ToNormal(four[0], four[1]);
      ToNormal(four[2], four[3]);
      for (float& x : four) x *= scale;
    }
    const int64_t count = std::min<int64_t>(4, width() - begin);
    std::copy_n(four.begin(), count, value + begin);
  }
}

void RowTable::Read(const Tensor& keys, const Tensor& rows) const {
  const int64_t* key = keys.data<int64_t>();
  float* out = rows.data<float>();
  ParallelFor(keys.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) row_of_.prefetch(key[i + kAhead]);
      const auto found = row_of_.find(key[i]);
      if (found == row_of_.end()) {
        Begin(key[i], out + i * width());
      } else {
        std::copy_n(Record(found->second), width(), out + i * width());
      }
    }
  });
}

void RowTable::Touch(const Tensor& keys) {
  const int64_t* key = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const auto found = row_of_.find(key[i]);
    if (found != row_of_.end()) Use(found->second);
  }
}

RowTable::Row RowTable::NewRow(int64_t key) {
  Row row = kNone;
  if (!free_.empty()) {
    row = free_.back();
    free_.pop_back();
  } else {
    row = static_cast<Row>(key_of_.size());
    if (row % kRowsPerBlock == 0) {
      blocks_.push_back(Tensor::Empty({kRowsPerBlock, record_}));
      block_data_.push_back(blocks_.back().data<float>());
    }
    key_of_.push_back(0);
    named_by_.push_back(0);
    place_.push_back(0);
    if (bounded()) {
      older_.push_back(kNone);
      newer_.push_back(kNone);
    }
  }
  key_of_[static_cast<size_t>(row)] = key;
  named_by_[static_cast<size_t>(row)] = 0;
  if (bounded()) Append(row);
  return row;
}

RowTable::Row RowTable::MakeRow(int64_t key) {
  const Row row = NewRow(key);
  float* record = Record(row);
  Begin(key, record);
  for (const ops::StateSlot& slot : slots_) {
    if (slot.name == nullptr) continue;
    record += width();
    std::fill_n(record, width(), static_cast<float>(slot.initial));
  }
  return row;
}

std::vector<RowTable::Touched> RowTable::Gather(
    const std::vector<RowGradients>& gradients,
    std::vector<std::vector<float>>& sums) {
  std::vector<Touched> touched;
  for (const RowGradients& given : gradients) {
    const int64_t* key = given.keys.data<int64_t>();
    const float* gradient = given.gradients.data<float>();
    const int64_t count = given.keys.numel();
    for (int64_t i = 0; i < count; ++i, gradient += width()) {
      if (i + kAhead < count) row_of_.prefetch(key[i + kAhead]);
      const auto [found, is_new] = row_of_.try_emplace(key[i], kNone);
      if (is_new) found->second = MakeRow(key[i]);
      const Row row = found->second;
      // To be stepped once all keys are found.
      for (int64_t j = 0; j < record_; j += kLine)
        __builtin_prefetch(Record(row) + j, /*rw=*/1);
      const auto at = static_cast<size_t>(row);
      if (named_by_[at] != steps_) {
        named_by_[at] = steps_;
        place_[at] = static_cast<int32_t>(touched.size());
        touched.push_back({.row = row, .gradient = gradient});
        continue;
      }
      Touched& first = touched[static_cast<size_t>(place_[at])];
      if (first.sum < 0) {
        first.sum = static_cast<int32_t>(sums.size());
        sums.emplace_back(first.gradient, first.gradient + width());
      }
      std::vector<float>& sum = sums[static_cast<size_t>(first.sum)];
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += gradient[j];
      first.gradient = sum.data();
    }
  }
  return touched;
}

void RowTable::StepRow(const Touched& touched, double scale) const {
  float* record = Record(touched.row);
  cpu::StepArrays arrays{.dtype = DType::kF32,
                         .value = record,
                         .grad_dtype = DType::kF32,
                         .grad = touched.gradient};
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].name == nullptr) continue;
    record += width();
    arrays.state[slot] = record;
  }
  const double rate =
      std::visit([](const auto& options) { return options.lr; }, options_.rule);
  cpu::StepRange(options_.rule, arrays,
                 {.rate = rate,
                  .step = steps_,
                  .limit = std::numeric_limits<double>::infinity(),
                  .scale = scale},
                 0, width(), 0);
}

void RowTable::Step(const std::vector<RowGradients>& gradients, double scale) {
  ++steps_;
  std::vector<std::vector<float>> sums;
  const std::vector<Touched> touched = Gather(gradients, sums);
  ParallelFor(static_cast<int64_t>(touched.size()), kGrain,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                  StepRow(touched[static_cast<size_t>(i)], scale);
              });
  if (!bounded()) return;
  for (const Touched& each : touched) Use(each.row);
  ForgetRest();
}

void RowTable::Append(Row row) {
  const auto at = static_cast<size_t>(row);
  older_[at] = newest_;
  newer_[at] = kNone;
  if (newest_ != kNone) newer_[static_cast<size_t>(newest_)] = row;
  newest_ = row;
  if (oldest_ == kNone) oldest_ = row;
}

void RowTable::Unlink(Row row) {
  const Row older = older_[static_cast<size_t>(row)];
  const Row newer = newer_[static_cast<size_t>(row)];
  (older == kNone ? oldest_ : newer_[static_cast<size_t>(older)]) = newer;
  (newer == kNone ? newest_ : older_[static_cast<size_t>(newer)]) = older;
}

void RowTable::Use(Row row) {
  if (!bounded() || row == newest_) return;
  Unlink(row);
  Append(row);
}

void RowTable::ForgetRest() {
  while (size() > limit_) {
    const Row row = oldest_;
    Unlink(row);
    row_of_.erase(key_of_[static_cast<size_t>(row)]);
    free_.push_back(row);
  }
}

}  // namespace baton::dist

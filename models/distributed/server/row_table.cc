// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <variant>

#include "core/cpu/optimizer.h"
#include "core/parallel.h"
#include "models/distributed/server/row_start.h"

namespace baton::dist {
namespace {

constexpr uint64_t kBlockBytes = 4 << 20;      // huge pages, of 2 MB
constexpr int64_t kGrainElements = 256 << 10;  // that are worth a thread
// Under way at a time: keys that are looked up, and records that are fetched.
constexpr int64_t kKeysAhead = 32;
constexpr int64_t kRecordsAhead = 16;
constexpr int64_t kLine = 64 / sizeof(float);  // of a cache

// To the second cache: the first one has too few misses under way at a time for
// so many lines, and the next prefetch would wait for one of them. Inline
// always: g++ 12 drops calls of what does nothing but prefetch.
template <int kToWrite>
[[gnu::always_inline]] inline void PrefetchLines(const float* begin,
                                                 int64_t count) {
  for (int64_t i = 0; i < count; i += kLine)
    __builtin_prefetch(begin + i, kToWrite, 2);
}

}  // namespace

// Where each row is among those that a step names. Small, and so in the caches,
// as nothing could be that is there for every row of the table.
class RowTable::Places {
 public:
  explicit Places(int64_t most)
      : mask_(std::bit_ceil(static_cast<uint64_t>(2 * most + 1)) - 1),
        places_(mask_ + 1, -1) {}

  // Below 0 where it was not named before: the caller then says where.
  int32_t& Of(Row row, const std::vector<Touched>& touched) {
    uint64_t at = static_cast<uint64_t>(row) * kSpread >> 32U & mask_;
    while (places_[at] >= 0 &&
           touched[static_cast<size_t>(places_[at])].row != row)
      at = (at + 1) & mask_;
    return places_[at];
  }

 private:
  static constexpr uint64_t kSpread =
      0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const uint64_t mask_;
  std::vector<int32_t> places_;
};

RowTable::RowTable(const RowTableOptions& options, int64_t limit,
                   const RowTableImage& image)
    : options_(options),
      limit_(limit),
      slots_(UsedSlots(options.rule)),
      record_(RecordOf(options)),
      block_bits_(std::bit_width(std::max<uint64_t>(
                      1, kBlockBytes / sizeof(float) /
                             static_cast<uint64_t>(record_))) -
                  1),
      rows_per_block_(int64_t{1} << block_bits_),
      steps_(image.steps) {
  if (!image.keys.defined()) return;
  const int64_t* key = image.keys.data<int64_t>();
  const float* record = image.records.data<float>();
  for (int64_t i = 0; i < image.keys.numel(); ++i, record += record_) {
    const Row row = NewRow(key[i]);
    row_of_.FindOrAdd(key[i]) = row;
    std::copy_n(record, record_, Record(row));
  }
  if (bounded()) ForgetRest();
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
    row_of_.ForEach([&](int64_t, Row row) { add(row); });
  }
  return image;
}

int64_t RowTable::Grain() const {
  return std::max<int64_t>(1, kGrainElements / width());
}

float* RowTable::Record(Row row) const {
  return block_data_[static_cast<size_t>(row >> block_bits_)] +
         (row & (rows_per_block_ - 1)) * record_;
}

// Three stages, so that the caches have each when it is needed: the place of a
// key in the index, its record, and what is copied of it.
void RowTable::Read(const Tensor& keys, const Tensor& rows) const {
  const int64_t* key = keys.data<int64_t>();
  float* out = rows.data<float>();
  ParallelFor(keys.numel(), Grain(), [&](int64_t begin, int64_t end) {
    std::array<const float*, kRecordsAhead> found{};
    for (int64_t i = begin; i < end + kRecordsAhead; ++i) {
      const float*& record = found[static_cast<size_t>(i % kRecordsAhead)];
      if (const int64_t done = i - kRecordsAhead; done >= begin)
        CopyOrBegin(record, key[done], out + done * width());
      if (i + kKeysAhead < end) row_of_.Prefetch(key[i + kKeysAhead]);
      if (i < end) record = Find(key[i]);
    }
  });
}

const float* RowTable::Find(int64_t key) const {
  const Row row = row_of_.Find(key);
  if (row == kNone) return nullptr;
  const float* record = Record(row);
  PrefetchLines</*kToWrite=*/0>(record, width());
  return record;
}

void RowTable::CopyOrBegin(const float* record, int64_t key, float* to) const {
  if (record == nullptr) {
    BeginRow(options_, key, to);
  } else {
    std::copy_n(record, width(), to);
  }
}

void RowTable::Touch(const Tensor& keys) {
  const int64_t* key = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const Row row = row_of_.Find(key[i]);
    if (row != kNone) Use(row);
  }
}

RowTable::Row RowTable::NewRow(int64_t key) {
  Row row = kNone;
  if (!free_.empty()) {
    row = free_.back();
    free_.pop_back();
  } else {
    row = static_cast<Row>(key_of_.size());
    if (row % rows_per_block_ == 0) {
      blocks_.push_back(Tensor::Empty({rows_per_block_, record_}));
      block_data_.push_back(blocks_.back().data<float>());
    }
    key_of_.push_back(0);
    if (bounded()) {
      older_.push_back(kNone);
      newer_.push_back(kNone);
    }
  }
  key_of_[static_cast<size_t>(row)] = key;
  if (bounded()) Append(row);
  return row;
}

RowTable::Row RowTable::MakeRow(int64_t key) {
  const Row row = NewRow(key);
  float* record = Record(row);
  BeginRow(options_, key, record);
  for (const ops::StateSlot& slot : slots_) {
    if (slot.name == nullptr) continue;
    record += width();
    std::fill_n(record, width(), static_cast<float>(slot.initial));
  }
  return row;
}

RowTable::Row RowTable::RowOf(int64_t key) {
  Row& row = row_of_.FindOrAdd(key);
  if (row == kNone) row = MakeRow(key);
  return row;
}

std::vector<RowTable::Touched> RowTable::Gather(
    const std::vector<RowGradients>& gradients,
    std::vector<std::vector<float>>& sums) {
  int64_t all = 0;
  for (const RowGradients& given : gradients) all += given.keys.numel();
  std::vector<Touched> touched;
  touched.reserve(static_cast<size_t>(all));
  Places places(all);
  for (const RowGradients& given : gradients) {
    const int64_t* key = given.keys.data<int64_t>();
    const float* gradient = given.gradients.data<float>();
    const int64_t count = given.keys.numel();
    for (int64_t i = 0; i < count; ++i, gradient += width()) {
      if (i + kKeysAhead < count) row_of_.Prefetch(key[i + kKeysAhead]);
      const Row row = RowOf(key[i]);
      int32_t& place = places.Of(row, touched);
      if (place < 0) {
        place = static_cast<int32_t>(touched.size());
        touched.push_back({.row = row, .gradient = gradient});
      } else {
        AddTo(touched[static_cast<size_t>(place)], gradient, sums);
      }
    }
  }
  return touched;
}

void RowTable::AddTo(Touched& touched, const float* gradient,
                     std::vector<std::vector<float>>& sums) const {
  if (touched.sum < 0) {
    touched.sum = static_cast<int32_t>(sums.size());
    sums.emplace_back(touched.gradient, touched.gradient + width());
  }
  std::vector<float>& sum = sums[static_cast<size_t>(touched.sum)];
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
  touched.gradient = sum.data();
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

std::vector<RowGradients> RowTable::Prepare(
    std::vector<RowGradients> gradients) const {
  for (RowGradients& rows : gradients) {
    rows.keys = PlacedOn(Device::Cpu(), rows.keys);
    rows.gradients = PlacedOn(Device::Cpu(), rows.gradients);
  }
  return gradients;
}

void RowTable::Step(const std::vector<RowGradients>& gradients, double scale) {
  ++steps_;
  std::vector<std::vector<float>> sums;
  const std::vector<Touched> touched = Gather(gradients, sums);
  ParallelFor(static_cast<int64_t>(touched.size()), Grain(),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  if (const int64_t next = i + kRecordsAhead; next < end)
                    PrefetchLines</*kToWrite=*/1>(
                        Record(touched[static_cast<size_t>(next)].row),
                        record_);
                  StepRow(touched[static_cast<size_t>(i)], scale);
                }
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
    row_of_.Erase(key_of_[static_cast<size_t>(row)]);
    free_.push_back(row);
  }
}

}  // namespace baton::dist

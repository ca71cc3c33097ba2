// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "core/parallel.h"
#include "models/distributed/server/row_start.h"

namespace baton::dist {
namespace {

constexpr uint64_t kBlockBytes = 4 << 20;  // so that huge pages, of 2 MB, are
                                           // used
// The number of elements for which another thread pays, for reading and for
// steps.
constexpr int64_t kGrainElements = 256 << 10;
constexpr int64_t kStepGrainElements = 32 << 10;
// The number of keys and of records that are prefetched at a time.
constexpr int64_t kKeysAhead = 32;
constexpr int64_t kRecordsAhead = 16;
// The number of rows that one call steps; a divisor of kRecordsAhead.
constexpr int64_t kSteppedTogether = 8;
constexpr int64_t kLine = 64 / sizeof(float);  // elements in a cache line

// Prefetches to the second-level cache: the first level supports too few
// concurrent misses for so many lines, and the next prefetch would wait for one
// of them. Always inline, because g++ 12 drops calls of functions that only
// prefetch.
template <int kToWrite>
[[gnu::always_inline]] inline void PrefetchLines(const float* begin,
                                                 int64_t count) {
  for (int64_t i = 0; i < count; i += kLine)
    __builtin_prefetch(begin + i, kToWrite, 2);
}

}  // namespace

struct RowTable::Prepared final : PreparedRows {
  Prepared(std::vector<RowGradients> given, int64_t most, int64_t width)
      : PreparedRows(given[0].rate),
        gradients(std::move(given)),
        found(most, width) {}
  const std::vector<RowGradients> gradients;  // the other members refer to
                                              // these
  RowWork found;
  std::vector<Named> rest{};  // rows that Step finds or makes
};

RowTable::RowTable(const RowTableOptions& options, int64_t limit,
                   const RowTableImage& image)
    : options_(options),
      slots_(UsedSlots(options.rule)),
      record_(RecordOf(options)),
      block_bits_(std::bit_width(std::max<uint64_t>(
                      1, kBlockBytes / sizeof(float) /
                             static_cast<uint64_t>(record_))) -
                  1),
      rows_per_block_(int64_t{1} << block_bits_),
      keyed_(limit),
      steps_(image.steps) {
  if (!image.keys.defined()) return;
  const float* saved = image.records.data<float>();
  for (int64_t i = 0; i < image.keys.numel(); ++i, saved += record_) {
    RowOf(image.keys.data<int64_t>()[i],
          [&](int64_t, float* record) { std::copy_n(saved, record_, record); });
  }
  keyed_.ForgetRest();
}

RowTableImage RowTable::Image() const {
  const int64_t rows = keyed_.size();
  RowTableImage image{.steps = steps_,
                      .keys = Tensor::Empty({rows}, {.dtype = DType::kI64}),
                      .records = Tensor::Empty({rows, record_})};
  int64_t* to = image.keys.data<int64_t>();
  float* record = image.records.data<float>();
  keyed_.ForEach([&](int64_t key, Row row) {
    *to++ = key;
    record = std::copy_n(Record(row), record_, record);
  });
  return image;
}

int64_t RowTable::Grain() const {
  return std::max<int64_t>(1, kGrainElements / width());
}

float* RowTable::Record(Row row) const {
  return block_data_[static_cast<size_t>(row >> block_bits_)] +
         (row & (rows_per_block_ - 1)) * record_;
}

// Three pipelined stages, so that the caches have each when it is needed: the
// key's slot in the index, its record, and the copied part of it.
void RowTable::Read(const Tensor& keys, const Tensor& rows) const {
  const int64_t* key = keys.data<int64_t>();
  float* out = rows.data<float>();
  ParallelFor(keys.numel(), Grain(), [&](int64_t begin, int64_t end) {
    std::array<const float*, kRecordsAhead> found{};
    for (int64_t i = begin; i < end + kRecordsAhead; ++i) {
      const float*& record = found[static_cast<size_t>(i % kRecordsAhead)];
      if (const int64_t done = i - kRecordsAhead; done >= begin)
        CopyOrBegin(record, key[done], out + done * width());
      if (i + kKeysAhead < end) keyed_.Prefetch(key[i + kKeysAhead]);
      if (i < end) record = Find(key[i]);
    }
  });
}

const float* RowTable::Find(int64_t key) const {
  const Row row = keyed_.Find(key);
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
    const Row row = keyed_.Find(key[i]);
    if (row != kNone) keyed_.Use(row);
  }
}

void RowTable::BeginRecord(int64_t key, float* record) const {
  BeginRow(options_, key, record);
  for (const ops::StateSlot& slot : slots_) {
    if (slot.name == nullptr) continue;
    record += width();
    std::fill_n(record, width(), static_cast<float>(slot.initial));
  }
}

template <typename Begin>
RowTable::Row RowTable::RowOf(int64_t key, Begin begin) {
  const auto [row, is_new] = keyed_.FindOrAdd(key);
  if (!is_new) return row;
  if (static_cast<size_t>(row >> block_bits_) == blocks_.size()) {
    blocks_.push_back(Tensor::Empty({rows_per_block_, record_}));
    block_data_.push_back(blocks_.back().data<float>());
  }
  begin(key, Record(row));
  return row;
}

cpu::StepArrays RowTable::ArraysOf(const TouchedRow& touched) const {
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
  return arrays;
}

std::unique_ptr<const PreparedRows> RowTable::Prepare(
    std::vector<RowGradients> gradients) const {
  int64_t all = 0;
  for (RowGradients& rows : gradients) {
    rows.keys = PlacedOn(Device::Cpu(), rows.keys);
    rows.gradients = PlacedOn(Device::Cpu(), rows.gradients);
    all += rows.keys.numel();
  }
  auto prepared = std::make_unique<Prepared>(
      std::move(gradients), keyed_.bounded() ? 0 : all, width());
  {
    const ReaderLock lock(index_mutex_);
    for (const RowGradients& rows : prepared->gradients) Find(rows, *prepared);
  }
  prepared->found.DealOut();
  return prepared;
}

void RowTable::Find(const RowGradients& rows, Prepared& prepared) const {
  const int64_t* key = rows.keys.data<int64_t>();
  const float* gradient = rows.gradients.data<float>();
  const int64_t count = rows.keys.numel();
  for (int64_t i = 0; i < count; ++i, gradient += width()) {
    if (i + kKeysAhead < count) keyed_.Prefetch(key[i + kKeysAhead]);
    const Row row = keyed_.bounded() ? kNone : keyed_.Find(key[i]);
    if (row != kNone) {
      prepared.found.Add(row, gradient);
    } else {
      prepared.rest.push_back({.key = key[i], .gradient = gradient});
    }
  }
}

void RowTable::Step(const Steps& steps, double scale) {
  const int64_t before = steps_;
  const auto by = [&](size_t i) {
    return RowStep{.step = before + static_cast<int64_t>(i) + 1,
                   .rate = steps[i]->rate,
                   .scale = scale};
  };
  int64_t rows = 0;
  std::vector<RowWork> made;
  made.reserve(steps.size());
  std::vector<std::pair<const RowWork*, RowStep>> works;  // in order
  for (size_t i = 0; i < steps.size(); ++i) {
    ++steps_;
    const auto& prepared = *static_cast<const Prepared*>(steps[i]);
    made.push_back(FindOrMake(prepared.rest));
    if (keyed_.bounded()) {
      StepAndForget(made.back(), by(i));
      continue;
    }
    made.back().DealOut();
    for (const RowWork* work :
         {&prepared.found, std::as_const(made).data() + i}) {
      works.emplace_back(work, by(i));
      rows += static_cast<int64_t>(work->rows());
    }
  }
  const int64_t elements = std::max<int64_t>(1, rows * width());
  const int64_t grain =
      (RowWork::kParts * kStepGrainElements + elements - 1) / elements;
  ParallelFor(RowWork::kParts, grain, [&](int64_t begin, int64_t end) {
    for (auto part = static_cast<size_t>(begin);
         part < static_cast<size_t>(end); ++part)
      for (const auto& [work, step] : works)
        StepRows(work->begin(part), work->end(part), step);
  });
}

RowWork RowTable::FindOrMake(const std::vector<Named>& named) {
  RowWork work(static_cast<int64_t>(named.size()), width());
  if (named.empty()) return work;
  const WriterLock lock(index_mutex_);
  for (size_t i = 0; i < named.size(); ++i) {
    if (const size_t next = i + size_t{kKeysAhead}; next < named.size())
      keyed_.Prefetch(named[next].key);
    const Row row = RowOf(named[i].key, [&](int64_t key, float* record) {
      BeginRecord(key, record);
    });
    work.Add(row, named[i].gradient);
  }
  return work;
}

void RowTable::StepAndForget(const RowWork& work, const RowStep& by) {
  StepRows(work.begin(), work.end(), by);
  for (const TouchedRow& each : work) keyed_.Use(each.row);
  keyed_.ForgetRest();
}

void RowTable::StepRows(const TouchedRow* begin, const TouchedRow* end,
                        const RowStep& by) const {
  const cpu::StepArguments arguments{
      .rate = by.rate * RateOf(options_.rule),
      .step = by.step,
      .limit = std::numeric_limits<double>::infinity(),
      .scale = by.scale};
  std::array<cpu::StepArrays, kSteppedTogether> together;
  const int64_t count = end - begin;
  for (int64_t i = -kRecordsAhead; i < count; i += kSteppedTogether) {
    for (int64_t ahead = i + kRecordsAhead;
         ahead < std::min(count, i + kRecordsAhead + kSteppedTogether);
         ++ahead) {
      PrefetchLines</*kToWrite=*/1>(Record(begin[ahead].row), record_);
      PrefetchLines</*kToWrite=*/0>(begin[ahead].gradient, width());
    }
    if (i < 0) continue;
    const int64_t rows = std::min(kSteppedTogether, count - i);
    for (int64_t row = 0; row < rows; ++row)
      together[static_cast<size_t>(row)] = ArraysOf(begin[i + row]);
    cpu::StepRange(options_.rule, {together.data(), static_cast<size_t>(rows)},
                   arguments, 0, width(), 0);
  }
}

}  // namespace baton::dist

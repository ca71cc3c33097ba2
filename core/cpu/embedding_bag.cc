// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/embedding_bag.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

constexpr int64_t kBagGrain = 16384;  // elements worth a thread

struct AddWeighted {
  template <typename T, typename C>
  BATON_SIMD_INLINE void operator()(C* sum, const T* row, C weight,
                                    int64_t count) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) sum[i] += weight * Convert<C>(row[i]);
  }
};

// The first of equal elements counts, and the first NaN.
template <typename T, typename C>
void TakeGreater(C* best, int64_t* rows, const T* row, int64_t number,
                 bool first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const C value = Convert<C>(row[i]);
    const bool greater = value > best[i] || std::isnan(value);
    if (!first && (std::isnan(best[i]) || !greater)) continue;
    best[i] = value;
    rows[i] = number;
  }
}

template <typename T>
class Bags {
 public:
  using C = ComputeType<T>;

  Bags(const ops::EmbeddingBagResult& result, const Tensor& table,
       const Tensor& index, const Tensor& offsets, const Tensor& weights,
       const ops::EmbeddingBagOptions& options)
      : result_(result),
        table_(table.data<T>()),
        index_(index.data<int64_t>()),
        offsets_(offsets.defined() ? offsets.data<int64_t>() : nullptr),
        weights_(weights.defined() ? weights.data<T>() : nullptr),
        options_(options),
        count_(index.numel()),
        bags_(result.y.dim(0)),
        width_(table.dim(1)) {}

  // `row` is scratch memory of a row.
  void Fill(int64_t bag, C* row) const {
    std::fill_n(row, width_, C(0));
    int64_t* const rows = result_.rows.defined()
                              ? result_.rows.data<int64_t>() + bag * width_
                              : nullptr;
    if (rows != nullptr) std::fill_n(rows, width_, int64_t{0});
    int64_t used = 0;
    const int64_t end = bag + 1 < bags_ ? Begin(bag + 1) : count_;
    for (int64_t i = Begin(bag); i < end; ++i) {
      result_.bags.data<int64_t>()[i] = bag;
      if (index_[i] == options_.padding_index) continue;
      const T* from = table_ + index_[i] * width_;
      if (rows != nullptr) {
        TakeGreater(row, rows, from, index_[i], used == 0, width_);
      } else {
        RunSimd(AddWeighted{}, row, from,
                weights_ != nullptr ? Convert<C>(weights_[i]) : C(1), width_);
      }
      ++used;
    }
    const bool mean = options_.mode == ops::BagMode::kMean;
    const C divisor = mean && used > 0 ? static_cast<C>(used) : C(1);
    T* y = result_.y.data<T>() + bag * width_;
    for (int64_t d = 0; d < width_; ++d) y[d] = Convert<T>(row[d] / divisor);
    result_.scale.data<T>()[bag] = Convert<T>(used > 0 ? C(1) / divisor : C(0));
  }

 private:
  int64_t Begin(int64_t bag) const {
    return offsets_ == nullptr ? bag * (count_ / bags_) : offsets_[bag];
  }

  const ops::EmbeddingBagResult& result_;
  const T* const table_;
  const int64_t* const index_;
  const int64_t* const offsets_;
  const T* const weights_;
  const ops::EmbeddingBagOptions options_;
  const int64_t count_, bags_, width_;
};

}  // namespace

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options) {
  const int64_t bags = result.y.dim(0), width = table.dim(1);
  const int64_t each = index.numel() * width / std::max<int64_t>(1, bags) + 1;
  VisitFloating("embedding_bag", table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Bags<T> all(result, table, index, offsets, weights, options);
    ParallelFor(bags, std::max<int64_t>(1, kBagGrain / each),
                [&](int64_t begin, int64_t end) {
                  std::vector<ComputeType<T>> row(static_cast<size_t>(width));
                  for (int64_t bag = begin; bag < end; ++bag)
                    all.Fill(bag, row.data());
                });
  });
}

}  // namespace baton::cpu

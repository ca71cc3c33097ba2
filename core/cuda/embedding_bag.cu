// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/device_types.cuh"
#include "core/cuda/embedding_bag.h"
#include "core/cuda/launch.h"
#include "core/cuda/offsets.cuh"

namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
struct BagTask {
  T* y;
  int64_t* bags;
  T* scale;
  int64_t* rows;  // only for kMax
  const T* table;
  const int64_t* index;
  const int64_t* offsets;  // null if all bags have the same size
  const T* weights;        // null: ones
  int64_t bag_count, index_count, table_rows, width, padding;
  ops::BagMode mode;

  __device__ __forceinline__ int64_t Begin(int64_t bag) const {
    if (bag == 0) return 0;
    if (bag >= bag_count) return index_count;
    if (offsets == nullptr) return bag * (index_count / bag_count);
    const int64_t begin = offsets[bag];
    return begin < 0 ? 0 : begin > index_count ? index_count : begin;
  }
};

// The state of a column of a bag after some of its rows.
template <typename C>
struct BagColumn {
  C value = C(0);
  int64_t row = 0;
  int64_t used = 0;

  __device__ __forceinline__ void Take(C element, C weight, int64_t from,
                                       bool greatest) {
    const bool first = used++ == 0;
    if (!greatest) {
      value += weight * element;
    } else if (first ||
               (!isnan(value) && (element > value || isnan(element)))) {
      value = element;
      row = from;
    }
  }
};

// A thread computes a column of a bag; the first thread of a bag also writes
// what the bag has once.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    EmbeddingBagKernel(const __grid_constant__ BagTask<T> task) {
  using C = Compute<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  // A bag without columns must still be processed.
  const int64_t columns = task.width > 0 ? task.width : 1;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < task.bag_count * columns; i += step) {
    const int64_t bag = Quotient(i, columns);
    const int64_t column = i - bag * columns;
    const int64_t end = task.Begin(bag + 1);
    BagColumn<C> sum;
    for (int64_t j = task.Begin(bag); j < end; ++j) {
      const int64_t row = task.index[j];
      if (column == 0) task.bags[j] = bag;
      if (row == task.padding) continue;
      const bool valid = row >= 0 && row < task.table_rows && task.width > 0;
      const C element = valid ? As<C>(task.table[row * task.width + column])
                              : static_cast<C>(nanf(""));
      const C weight = task.weights != nullptr ? As<C>(task.weights[j]) : C(1);
      sum.Take(element, weight, row, task.mode == ops::BagMode::kMax);
    }
    const bool mean = task.mode == ops::BagMode::kMean && sum.used > 0;
    const C divisor = mean ? static_cast<C>(sum.used) : C(1);
    if (column == 0) {
      task.scale[bag] = As<T>(sum.used > 0 ? C(1) / divisor : C(0));
    }
    if (task.width == 0) continue;
    task.y[i] = As<T>(sum.value / divisor);
    if (task.rows != nullptr) task.rows[i] = sum.row;
  }
}

template <typename T>
T* DataOf(const Tensor& x) {
  return x.defined() ? static_cast<T*>(x.raw_data()) : nullptr;
}

}  // namespace

void EmbeddingBag(const ops::EmbeddingBagResult& result, const Tensor& table,
                  const Tensor& index, const Tensor& offsets,
                  const Tensor& weights,
                  const ops::EmbeddingBagOptions& options) {
  if (result.y.dim(0) == 0) return;
  const Launch launch("embedding_bag",
                      {&result.y, &result.bags, &result.scale, &result.rows},
                      {&table, &index, &offsets, &weights});
  VisitDeviceFloating("embedding_bag", table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const BagTask<T> task{.y = DataOf<T>(result.y),
                          .bags = DataOf<int64_t>(result.bags),
                          .scale = DataOf<T>(result.scale),
                          .rows = DataOf<int64_t>(result.rows),
                          .table = DataOf<const T>(table),
                          .index = DataOf<const int64_t>(index),
                          .offsets = DataOf<const int64_t>(offsets),
                          .weights = DataOf<const T>(weights),
                          .bag_count = result.y.dim(0),
                          .index_count = index.numel(),
                          .table_rows = table.dim(0),
                          .width = table.dim(1),
                          .padding = options.padding_index,
                          .mode = options.mode};
    const int64_t threads = task.bag_count * (task.width > 0 ? task.width : 1);
    EmbeddingBagKernel<<<launch.Blocks(threads, kThreads), kThreads, 0,
                         launch.stream()>>>(task);
    launch.Check();
  });
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/cuda/device_types.cuh"
#include "core/cuda/indexing.h"
#include "core/cuda/launch.h"
#include "core/cuda/offsets.cuh"
#include "core/cuda/sorted_entries.cuh"

// Kernels that write by index, where several sources may have one cell. With
// many lines along the axis, or short ones, one thread processes a line in
// order. Otherwise entries are sorted by cell, and runs of one cell are summed
// in chunks. A run that is within one chunk is added to its cell at once. If a
// run spans several chunks, each chunk stores the sum of its piece: in `heads`
// if the run comes from an earlier chunk, in `tails` if it begins in this one.
// The chunk where the run begins then adds up the pieces.
namespace baton::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;  // loads before the first use
constexpr int64_t kShortLine = 32;
constexpr int64_t kManyLines = 16384;

template <typename S>
__device__ __forceinline__ S Plus(S a, S b) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

__device__ __forceinline__ int64_t FirstThread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t AllThreads() {
  return int64_t{gridDim.x} * kThreads;
}

template <typename T>
struct LineTask {
  T* out;
  const T* source;
  const int64_t* index;
  Offsets<3> starts;  // of index, out and source
  int64_t lines;
  int64_t length;      // of a line of indices
  int64_t size;        // of out along the axis
  int64_t strides[3];  // along the axis
};

template <bool kAdd, typename T>
__global__ void __launch_bounds__(kThreads)
    LinesKernel(const __grid_constant__ LineTask<T> task) {
  for (int64_t line = FirstThread(); line < task.lines; line += AllThreads()) {
    int64_t at[3];
    task.starts.At(line, at);
    for (int64_t k = 0; k < task.length; ++k) {
      const int64_t position = task.index[at[0] + k * task.strides[0]];
      if (position < 0 || position >= task.size) continue;
      const T value = task.source[at[2] + k * task.strides[2]];
      T& cell = task.out[at[1] + position * task.strides[1]];
      if constexpr (kAdd) {
        cell = As<T>(Plus(As<Sum<T>>(cell), As<Sum<T>>(value)));
      } else {
        cell = value;
      }
    }
  }
}

// Cells of a scatter are offsets in out.
struct CellTask {
  uint32_t* cells;
  const int64_t* index;
  Offsets<2> loop;  // of the index, dense, and out without the axis
  int64_t count;
  int64_t size, stride;  // of out along the axis
  uint32_t none;
};

__global__ void __launch_bounds__(kThreads)
    CellsKernel(const __grid_constant__ CellTask task) {
  for (int64_t i = FirstThread(); i < task.count; i += AllThreads()) {
    int64_t at[2];
    task.loop.At(i, at);
    const int64_t position = task.index[i];
    const bool valid = position >= 0 && position < task.size;
    task.cells[i] = valid
                        ? static_cast<uint32_t>(at[1] + position * task.stride)
                        : task.none;
  }
}

// Entries sorted by cell, each a row of `width` elements.
template <typename T>
struct RunTask {
  T* out;           // a row for each cell
  const T* source;  // a row for each number of a source
  Offsets<2> rows;  // source is the second operand, in the order of its numbers
  const uint32_t* cells;
  const int32_t* sources;
  int64_t count;
  uint32_t none;
  int64_t width;
  int64_t chunk;  // entries
  int64_t chunks;
  Sum<T>* heads;  // [chunks, width]
  Sum<T>* tails;  // [chunks, width]

  // Returns whether the entry before belongs to the run of `entry`. The next
  // function asks for the entry after.
  __device__ __forceinline__ bool FromBefore(int64_t entry) const {
    return entry > 0 && cells[entry - 1] == cells[entry];
  }
  __device__ __forceinline__ bool GoesOn(int64_t entry) const {
    return entry + 1 < count && cells[entry + 1] == cells[entry];
  }
  __device__ __forceinline__ int64_t End(int64_t number) const {
    return min((number + 1) * chunk, count);
  }
  __device__ __forceinline__ T Value(int64_t entry, int64_t column) const {
    int64_t at[2];
    rows.At(sources[entry], at);
    return source[at[1] + column];
  }
  __device__ __forceinline__ void AddToCell(uint32_t cell, int64_t column,
                                            Sum<T> sum) const {
    if (cell == none) return;
    T& target = out[int64_t{cell} * width + column];
    target = As<T>(Plus(As<Sum<T>>(target), sum));
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    LastOfRunsKernel(const __grid_constant__ RunTask<T> task) {
  for (int64_t i = FirstThread(); i < task.count; i += AllThreads()) {
    const uint32_t cell = task.cells[i];
    if (cell != task.none && !task.GoesOn(i)) task.out[cell] = task.Value(i, 0);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    SumRunsKernel(const __grid_constant__ RunTask<T> task) {
  for (int64_t i = FirstThread(); i < task.chunks * task.width;
       i += AllThreads()) {
    const int64_t number = Quotient(i, task.width);
    const int64_t column = i - number * task.width;
    const int64_t begin = number * task.chunk;
    const int64_t end = task.End(number);
    bool from_before = task.FromBefore(begin);
    Sum<T> sum = 0;
    for (int64_t first = begin; first < end; first += kInFlight) {
      T values[kInFlight];
      bool goes_on[kInFlight];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) {
        const int64_t entry = min(first + j, end - 1);
        values[j] = task.Value(entry, column);
        goes_on[j] = task.GoesOn(entry);
      }
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) {
        const int64_t entry = first + j;
        if (entry >= end) break;
        sum = Plus(sum, As<Sum<T>>(values[j]));
        if (goes_on[j] && entry + 1 < end) continue;
        if (from_before) {
          task.heads[i] = sum;
        } else if (goes_on[j]) {
          task.tails[i] = sum;
        } else {
          task.AddToCell(task.cells[entry], column, sum);
        }
        from_before = false;
        sum = 0;
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    JoinRunsKernel(const __grid_constant__ RunTask<T> task) {
  for (int64_t i = FirstThread(); i < task.chunks * task.width;
       i += AllThreads()) {
    int64_t number = Quotient(i, task.width);
    const int64_t column = i - number * task.width;
    const int64_t begin = number * task.chunk;
    const uint32_t cell = task.cells[task.End(number) - 1];
    const bool begins_here =
        task.cells[begin] != cell || !task.FromBefore(begin);
    if (!begins_here || !task.GoesOn(task.End(number) - 1)) continue;
    Sum<T> sum = task.tails[i];
    do {
      ++number;
      sum = Plus(sum, task.heads[number * task.width + column]);
    } while (task.cells[task.End(number) - 1] == cell &&
             task.GoesOn(task.End(number) - 1));
    task.AddToCell(cell, column, sum);
  }
}

// Sums runs in chunks whose length is about their number.
template <typename T>
void AddRuns(const char* op, RunTask<T> task, Device device) {
  const auto root = std::bit_ceil(static_cast<uint64_t>(std::sqrt(task.count)));
  task.chunk = static_cast<int64_t>(std::clamp<uint64_t>(root, 32, 2048));
  task.chunks = (task.count + task.chunk - 1) / task.chunk;
  const Tensor pieces =
      Tensor::Empty(Shape({2, task.chunks, task.width}),
                    {.dtype = kDTypeOf<Sum<T>>, .device = device});
  task.heads = static_cast<Sum<T>*>(pieces.raw_data());
  task.tails = task.heads + task.chunks * task.width;
  const Launch launch(op, {&pieces}, {});
  const int blocks = launch.Blocks(task.chunks * task.width, kThreads);
  SumRunsKernel<<<blocks, kThreads, 0, launch.stream()>>>(task);
  launch.Check();
  JoinRunsKernel<<<blocks, kThreads, 0, launch.stream()>>>(task);
  launch.Check();
}

template <typename T>
RunTask<T> RunsOf(const char* op, const SortedEntries& entries,
                  const Tensor& out, const Tensor& source,
                  const StridedLoop<2>& rows, int64_t width) {
  return {.out = static_cast<T*>(out.raw_data()),
          .source = static_cast<const T*>(source.raw_data()),
          .rows = {op, rows},
          .cells = entries.cells(),
          .sources = entries.sources(),
          .count = entries.count(),
          .none = entries.none(),
          .width = width,
          .chunk = 0,
          .chunks = 0,
          .heads = nullptr,
          .tails = nullptr};
}

// Calls fn(type) with T, or with an unsigned type of its size if elements are
// only moved.
template <typename Fn>
void VisitMoved(ScatterMode mode, DType dtype, Fn fn) {
  if (mode == ScatterMode::kAdd) return VisitDeviceType(dtype, fn);
  switch (SizeOf(dtype)) {
    case 8:
      return fn(std::type_identity<int64_t>{});
    case 4:
      return fn(std::type_identity<int32_t>{});
    case 2:
      return fn(std::type_identity<__half>{});
    default:
      return fn(std::type_identity<uint8_t>{});
  }
}

void ScatterLines(const char* op, ScatterMode mode, const Tensor& out, int axis,
                  const Tensor& index, const Tensor& source) {
  const Launch launch(op, {&out}, {&index, &source});
  const auto at = static_cast<size_t>(axis);
  Dims dims = index.shape().dims();
  dims[at] = 1;
  const StridedLoop<3> loop(
      Shape(dims), {&index.strides(), &out.strides(), &source.strides()});
  VisitMoved(mode, out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const LineTask<T> task{
        .out = static_cast<T*>(out.raw_data()),
        .source = static_cast<const T*>(source.raw_data()),
        .index = static_cast<const int64_t*>(index.raw_data()),
        .starts = {op, loop},
        .lines = loop.numel,
        .length = index.dim(axis),
        .size = out.dim(axis),
        .strides = {index.strides()[at], out.strides()[at],
                    source.strides()[at]}};
    const int blocks = launch.Blocks(task.lines, kThreads);
    if (mode == ScatterMode::kAdd) {
      LinesKernel<true><<<blocks, kThreads, 0, launch.stream()>>>(task);
    } else {
      LinesKernel<false><<<blocks, kThreads, 0, launch.stream()>>>(task);
    }
    launch.Check();
  });
}

// `loop` is over the dense index and `out` without the axis; `size` and
// `stride` are those of the axis.
void FillCells(const char* op, const SortedEntries& entries,
               const Tensor& index, const StridedLoop<2>& loop, int64_t size,
               int64_t stride) {
  const Launch launch(op, {&entries.memory()}, {&index});
  const CellTask task{.cells = entries.unsorted_cells(),
                      .index = static_cast<const int64_t*>(index.raw_data()),
                      .loop = {op, loop},
                      .count = loop.numel,
                      .size = size,
                      .stride = stride,
                      .none = entries.none()};
  CellsKernel<<<launch.Blocks(task.count, kThreads), kThreads, 0,
                launch.stream()>>>(task);
  launch.Check();
}

void ScatterSorted(const char* op, ScatterMode mode, const Tensor& out,
                   int axis, const Tensor& index, const Tensor& source) {
  const SortedEntries entries(op, index.numel(), out.numel(), out.device());
  Dims out_strides = out.strides();
  out_strides[static_cast<size_t>(axis)] = 0;
  FillCells(op, entries, index,
            {index.shape(), {&index.strides(), &out_strides}}, out.dim(axis),
            out.strides()[static_cast<size_t>(axis)]);
  entries.Sort();
  const Launch launch(op, {&out}, {&entries.memory(), &source});
  // The index is dense and comes first, so the loop keeps its order.
  const StridedLoop<2> rows(index.shape(),
                            {&index.strides(), &source.strides()});
  VisitMoved(mode, out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto task = RunsOf<T>(op, entries, out, source, rows, 1);
    if (mode == ScatterMode::kAdd) return AddRuns(op, task, out.device());
    LastOfRunsKernel<<<launch.Blocks(task.count, kThreads), kThreads, 0,
                       launch.stream()>>>(task);
    launch.Check();
  });
}

}  // namespace

void Scatter(ScatterMode mode, const Tensor& out, int axis, const Tensor& index,
             const Tensor& source) {
  if (index.numel() == 0) return;
  const char* op = mode == ScatterMode::kAdd ? "scatter_add" : "scatter";
  const int64_t length = index.dim(axis);
  if (length <= kShortLine || index.numel() / length >= kManyLines) {
    ScatterLines(op, mode, out, axis, index, source);
  } else {
    ScatterSorted(op, mode, out, axis, index, source);
  }
}

void AddToRows(const Tensor& table, const Tensor& dy, const Tensor& index) {
  if (dy.numel() == 0) return;
  constexpr char kOp[] = "embedding_backward";
  const int64_t width = table.dim(1);
  const Shape shape({index.numel()});
  const Dims one = {1}, none = {0}, row = {width};
  const SortedEntries entries(kOp, index.numel(), table.dim(0), table.device());
  FillCells(kOp, entries, index, {shape, {&one, &none}}, table.dim(0), 1);
  entries.Sort();
  const Launch launch(kOp, {&table}, {&entries.memory(), &dy});
  const StridedLoop<2> rows(shape, {&one, &row});
  VisitDeviceFloating(kOp, table.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    AddRuns(kOp, RunsOf<T>(kOp, entries, table, dy, rows, width),
            table.device());
  });
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "core/cuda/device_types.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/offsets.cuh"
#include "core/cuda/scan.h"

// Short lines, and many adjacent lines, take one thread each. Other lines take
// one block each. If such lines are few and long, they are divided into chunks,
// whose sums are scanned first. CUB's scan of a whole device would not give
// equal bits in equal calls.
namespace baton::cuda {
namespace {

constexpr char kOp[] = "cumsum";
constexpr int kThreads = 256;
constexpr int kItems = 4;
constexpr int64_t kTile = kThreads * kItems;
constexpr int64_t kShortLine = 32;
constexpr int64_t kManyLines = 4096;

template <typename T>
struct ScanTask {
  T* out;
  const T* x;
  Offsets<2> starts;  // of the lines, in out and x
  int64_t lines, size;
  int64_t out_stride, x_stride;  // along a line
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ScanByThreadKernel(const __grid_constant__ ScanTask<T> task) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t line = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       line < task.lines; line += step) {
    int64_t at[2];
    task.starts.At(line, at);
    Sum<T> sum = 0;
    for (int64_t k = 0; k < task.size; ++k) {
      sum += As<Sum<T>>(task.x[at[1] + k * task.x_stride]);
      task.out[at[0] + k * task.out_stride] = As<T>(sum);
    }
  }
}

// Writes to sums[line * chunks + chunk] the sum of `chunk_size` elements.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ChunkSumsKernel(const __grid_constant__ ScanTask<T> task, int64_t chunks,
                    int64_t chunk_size, Sum<T>* sums) {
  using Reduce = cub::BlockReduce<Sum<T>, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  for (int64_t i = blockIdx.x; i < task.lines * chunks; i += gridDim.x) {
    const int64_t line = i / chunks;
    const int64_t begin = (i - line * chunks) * chunk_size;
    const int64_t end = min(begin + chunk_size, task.size);
    int64_t at[2];
    task.starts.At(line, at);
    Sum<T> sum = 0;
    for (int64_t k = begin + threadIdx.x; k < end; k += kThreads) {
      sum += As<Sum<T>>(task.x[at[1] + k * task.x_stride]);
    }
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0) sums[i] = sum;
    __syncthreads();
  }
}

// `before` holds the scanned sums of chunks, or is null if a chunk is a whole
// line. out may be x.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ScanChunksKernel(const __grid_constant__ ScanTask<T> task, int64_t chunks,
                     int64_t chunk_size, const Sum<T>* before) {
  using Scan = cub::BlockScan<Sum<T>, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  for (int64_t i = blockIdx.x; i < task.lines * chunks; i += gridDim.x) {
    const int64_t line = i / chunks;
    const int64_t chunk = i - line * chunks;
    const int64_t end = min((chunk + 1) * chunk_size, task.size);
    int64_t at[2];
    task.starts.At(line, at);
    Sum<T> carry = chunk > 0 ? before[i - 1] : Sum<T>(0);
    for (int64_t tile = chunk * chunk_size; tile < end; tile += kTile) {
      const int64_t first = tile + int64_t{threadIdx.x} * kItems;
      Sum<T> items[kItems];
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int64_t k = first + j;
        items[j] =
            k < end ? As<Sum<T>>(task.x[at[1] + k * task.x_stride]) : Sum<T>(0);
      }
      Sum<T> total;
      Scan(storage).InclusiveSum(items, items, total);
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int64_t k = first + j;
        if (k < end) {
          task.out[at[0] + k * task.out_stride] = As<T>(carry + items[j]);
        }
      }
      carry += total;
      __syncthreads();
    }
  }
}

template <typename T>
void ScanByBlock(const Launch& launch, const ScanTask<T>& task, int64_t chunks,
                 int64_t chunk_size, const Sum<T>* before) {
  ScanChunksKernel<<<launch.Blocks(task.lines * chunks, 1), kThreads, 0,
                     launch.stream()>>>(task, chunks, chunk_size, before);
  launch.Check();
}

template <typename T>
void ScanInChunks(const Launch& launch, const ScanTask<T>& task, Device device,
                  int64_t chunk_size) {
  using S = Sum<T>;
  const int64_t chunks = (task.size + chunk_size - 1) / chunk_size;
  const Shape shape({task.lines, chunks});
  const Tensor sums =
      Tensor::Empty(shape, {.dtype = kDTypeOf<S>, .device = device});
  const Launch use(kOp, {&sums}, {});
  S* data = static_cast<S*>(sums.raw_data());
  ChunkSumsKernel<<<launch.Blocks(task.lines * chunks, 1), kThreads, 0,
                    launch.stream()>>>(task, chunks, chunk_size, data);
  launch.Check();
  const Dims starts = {chunks, 0};
  const StridedLoop<2> lines({task.lines, 1}, {&starts, &starts});
  ScanByBlock<S>(launch,
                 {.out = data,
                  .x = data,
                  .starts = {kOp, lines},
                  .lines = task.lines,
                  .size = chunks,
                  .out_stride = 1,
                  .x_stride = 1},
                 1, chunks, nullptr);
  ScanByBlock(launch, task, chunks, chunk_size, data);
}

template <typename T>
void RunScan(const Launch& launch, const ScanTask<T>& task, Device device) {
  const bool side_by_side = task.x_stride != 1 && task.x_stride != -1;
  if (task.size <= kShortLine || (side_by_side && task.lines >= kManyLines)) {
    ScanByThreadKernel<<<launch.Blocks(task.lines, kThreads), kThreads, 0,
                         launch.stream()>>>(task);
    return launch.Check();
  }
  const int64_t blocks = int64_t{4} * launch.multiprocessors();
  const int64_t wanted = std::max<int64_t>(blocks / task.lines, 1);
  const int64_t tiles = (task.size + kTile - 1) / kTile;
  const int64_t chunk_size = (tiles + wanted - 1) / wanted * kTile;
  if (chunk_size >= task.size) {
    return ScanByBlock<T>(launch, task, 1, task.size, nullptr);
  }
  ScanInChunks(launch, task, device, chunk_size);
}

template <typename T>
ScanTask<T> TaskOf(const Tensor& out, const Tensor& x, int axis, bool reverse) {
  const auto at = static_cast<size_t>(axis);
  Dims dims = x.shape().dims();
  dims[at] = 1;
  const StridedLoop<2> starts(Shape(dims), {&out.strides(), &x.strides()});
  ScanTask<T> task{.out = static_cast<T*>(out.raw_data()),
                   .x = static_cast<const T*>(x.raw_data()),
                   .starts = {kOp, starts},
                   .lines = starts.numel,
                   .size = x.dim(axis),
                   .out_stride = out.strides()[at],
                   .x_stride = x.strides()[at]};
  if (reverse) {
    task.out += (task.size - 1) * task.out_stride;
    task.x += (task.size - 1) * task.x_stride;
    task.out_stride = -task.out_stride;
    task.x_stride = -task.x_stride;
  }
  return task;
}

}  // namespace

void CumSum(const Tensor& out, const Tensor& x, int axis, bool reverse) {
  if (out.numel() == 0) return;
  const Launch launch(kOp, {&out}, {&x});
  if (out.dtype() == DType::kI64) {
    return RunScan(launch, TaskOf<int64_t>(out, x, axis, reverse),
                   out.device());
  }
  VisitDeviceFloating(kOp, out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    RunScan(launch, TaskOf<T>(out, x, axis, reverse), out.device());
  });
}

}  // namespace baton::cuda

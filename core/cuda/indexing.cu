// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <bit>

#include "core/cuda/device_types.cuh"
#include "core/cuda/indexing.h"
#include "core/cuda/launch.h"
#include "core/cuda/offsets.cuh"

// Kernels that read by index. They move elements as unsigned numbers of the
// same size.
namespace baton::cuda {
namespace {

constexpr int kThreads = 256;

struct alignas(16) Words {
  uint64_t at[2];
};

// Returns 16 bytes of the value that replaces an element out of range.
Words Absent(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {{0x7fc000007fc00000u, 0x7fc000007fc00000u}};
    case DType::kF64:
      return {{0x7ff8000000000000u, 0x7ff8000000000000u}};
    case DType::kF16:
      return {{0x7e007e007e007e00u, 0x7e007e007e007e00u}};
    case DType::kBF16:
      return {{0x7fc07fc07fc07fc0u, 0x7fc07fc07fc07fc0u}};
    default:
      return {{0, 0}};
  }
}

template <typename Unit>
Unit AbsentUnit(DType dtype) {
  const Words words = Absent(dtype);
  if constexpr (sizeof(Unit) == 16) {
    return std::bit_cast<Unit>(words);
  } else {
    return static_cast<Unit>(words.at[0]);
  }
}

// Calls fn(std::type_identity<Unit>{}) with a number of `size` bytes.
template <typename Fn>
void VisitUnit(size_t size, Fn fn) {
  switch (size) {
    case 16:
      return fn(std::type_identity<uint4>{});
    case 8:
      return fn(std::type_identity<uint64_t>{});
    case 4:
      return fn(std::type_identity<uint32_t>{});
    case 2:
      return fn(std::type_identity<uint16_t>{});
    default:
      return fn(std::type_identity<uint8_t>{});
  }
}

template <typename Unit>
struct GatherTask {
  Unit* out;
  const Unit* x;
  const int64_t* index;
  Offsets<3> loop;  // of out, x without the axis, and index
  int64_t count;
  int64_t size, stride;  // of x along the axis
  Unit absent;
};

template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    GatherKernel(const __grid_constant__ GatherTask<Unit> task) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
#pragma unroll 2
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < task.count;
       i += step) {
    int64_t at[3];
    task.loop.At(i, at);
    const int64_t position = task.index[at[2]];
    const bool valid = position >= 0 && position < task.size;
    task.out[at[0]] =
        valid ? task.x[at[1] + position * task.stride] : task.absent;
  }
}

// Copies rows of `width` units, of which `count` are copied in all: those of
// the table that the index names to lines, or with kPut lines to those.
template <bool kPut, typename Unit>
__global__ void __launch_bounds__(kThreads)
    RowsKernel(Unit* to, const Unit* from, const int64_t* index, int64_t count,
               int64_t rows, int64_t width, Unit absent) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
#pragma unroll 2
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    const int64_t line = Quotient(i, width);
    const int64_t row = index[line];
    const bool valid = row >= 0 && row < rows;
    const int64_t cell = row * width + (i - line * width);
    if constexpr (kPut) {
      if (valid) to[cell] = from[i];
    } else {
      to[i] = valid ? from[cell] : absent;
    }
  }
}

template <bool kPut>
void CopyRows(const char* op, const Tensor& to, const Tensor& from,
              const Tensor& index) {
  const Tensor& table = kPut ? to : from;
  const Tensor& lines = kPut ? from : to;
  if (lines.numel() == 0) return;
  const Launch launch(op, {&to}, {&from, &index});
  const size_t bytes =
      static_cast<size_t>(table.dim(1)) * SizeOf(table.dtype());
  size_t unit = 16;
  while (bytes % unit != 0 || !IsAligned(to.raw_data(), unit) ||
         !IsAligned(from.raw_data(), unit)) {
    unit /= 2;
  }
  VisitUnit(unit, [&](auto type) {
    using Unit = typename decltype(type)::type;
    const auto width = static_cast<int64_t>(bytes / unit);
    const int64_t count = index.numel() * width;
    RowsKernel<kPut>
        <<<launch.Blocks(count, kThreads, 2), kThreads, 0, launch.stream()>>>(
            static_cast<Unit*>(to.raw_data()),
            static_cast<const Unit*>(from.raw_data()),
            static_cast<const int64_t*>(index.raw_data()), count, table.dim(0),
            width, AbsentUnit<Unit>(table.dtype()));
    launch.Check();
  });
}

__global__ void __launch_bounds__(kThreads)
    OneHotKernel(float* out, const int64_t* labels, int64_t count,
                 int64_t classes) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    const int64_t row = Quotient(i, classes);
    const int64_t label = labels[row];
    const bool valid = label >= 0 && label < classes;
    const float mark = i - row * classes == label ? 1.0f : 0.0f;
    out[i] = valid ? mark : nanf("");
  }
}

}  // namespace

void Gather(const Tensor& out, const Tensor& x, int axis, const Tensor& index) {
  if (index.numel() == 0) return;
  constexpr char kOp[] = "gather";
  const Launch launch(kOp, {&out}, {&x, &index});
  Dims x_strides = x.strides();
  x_strides[static_cast<size_t>(axis)] = 0;
  const StridedLoop<3> loop(index.shape(),
                            {&out.strides(), &x_strides, &index.strides()});
  VisitUnit(SizeOf(x.dtype()), [&](auto type) {
    using Unit = typename decltype(type)::type;
    const GatherTask<Unit> task{
        .out = static_cast<Unit*>(out.raw_data()),
        .x = static_cast<const Unit*>(x.raw_data()),
        .index = static_cast<const int64_t*>(index.raw_data()),
        .loop = {kOp, loop},
        .count = loop.numel,
        .size = x.dim(axis),
        .stride = x.strides()[static_cast<size_t>(axis)],
        .absent = AbsentUnit<Unit>(x.dtype())};
    GatherKernel<<<launch.Blocks(task.count, kThreads, 2), kThreads, 0,
                   launch.stream()>>>(task);
    launch.Check();
  });
}

void TakeRows(const Tensor& out, const Tensor& table, const Tensor& index) {
  CopyRows<false>("embedding", out, table, index);
}

void PutRows(const Tensor& table, const Tensor& values, const Tensor& index) {
  CopyRows<true>("put_rows", table, values, index);
}

void OneHot(const Tensor& out, const Tensor& labels) {
  if (out.numel() == 0) return;
  const Launch launch("one_hot", {&out}, {&labels});
  OneHotKernel<<<launch.Blocks(out.numel(), kThreads), kThreads, 0,
                 launch.stream()>>>(
      static_cast<float*>(out.raw_data()),
      static_cast<const int64_t*>(labels.raw_data()), out.numel(), out.dim(1));
  launch.Check();
}

}  // namespace baton::cuda

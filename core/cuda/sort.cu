// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <limits>

#include "core/cuda/bits.cuh"
#include "core/cuda/device_types.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/offsets.cuh"
#include "core/cuda/sort.h"

// All lines are sorted at once, by keys that are unsigned numbers: the line's
// number in the upper half and the element's order in the lower. If the element
// needs the whole key, a second, stable sort brings the lines together.
namespace baton::cuda {
namespace {

constexpr char kOp[] = "sort";
constexpr int kThreads = 256;

// Returns numbers that have the order of the values; NaN is last, and -0 is
// equal to 0.
template <typename T>
__device__ __forceinline__ auto OrderOf(T element) {
  using C = Compute<T>;
  using U = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  constexpr U kSign = U(1) << (sizeof(U) * 8 - 1);
  const C value = As<C>(element);
  if constexpr (std::is_floating_point_v<C>) {
    if (value != value) return static_cast<U>(~U(0));
    const auto bits = __builtin_bit_cast(U, value == C(0) ? C(0) : value);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<C>) {
    return static_cast<U>(value) ^ kSign;
  } else {
    return static_cast<U>(value);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    KeysKernel(const T* x, uint64_t* keys, int32_t* sources, int64_t count,
               int64_t size, bool descending) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    auto order = OrderOf(x[i]);
    if (descending) order = ~order;
    uint64_t key = order;
    if constexpr (sizeof(order) == 4) {
      key |= static_cast<uint64_t>(Quotient(i, size)) << 32;
    }
    keys[i] = key;
    sources[i] = static_cast<int32_t>(i);
  }
}

__global__ void __launch_bounds__(kThreads)
    LinesKernel(const int32_t* sources, uint64_t* lines, int64_t count,
                int64_t size) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    lines[i] = static_cast<uint64_t>(Quotient(sources[i], size));
  }
}

// Copies the first `kept` elements of each line of `size`.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    TakeKernel(const Unit* x, const int32_t* sources, Unit* values,
               int64_t* indices, int64_t count, int64_t size, int64_t kept) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    const int64_t line = Quotient(i, kept);
    const int64_t source = sources[line * size + (i - line * kept)];
    values[i] = x[source];
    indices[i] = source - line * size;
  }
}

// Keys and their sources, before and after a sort.
class SortBuffers {
 public:
  SortBuffers(int64_t count, Device device)
      : count_(count),
        keys_(Tensor::Empty({2, count},
                            {.dtype = DType::kI64, .device = device})),
        sources_(Tensor::Empty({2, count},
                               {.dtype = DType::kI32, .device = device})) {}

  uint64_t* keys() const { return Row<uint64_t>(keys_, now_); }
  int32_t* sources() const { return Row<int32_t>(sources_, now_); }
  const Tensor& key_memory() const { return keys_; }
  const Tensor& source_memory() const { return sources_; }

  // Sorts by the keys' lowest `bits`; equal keys keep their order.
  void Sort(const Launch& launch, int bits) {
    const auto sort = [&](void* workspace, size_t& bytes) {
      launch.Check(cub::DeviceRadixSort::SortPairs(
          workspace, bytes, keys(), Row<uint64_t>(keys_, 1 - now_), sources(),
          Row<int32_t>(sources_, 1 - now_), static_cast<int32_t>(count_), 0,
          bits, launch.stream()));
    };
    size_t bytes = 0;
    sort(nullptr, bytes);
    const Tensor workspace =
        Tensor::Empty({static_cast<int64_t>(bytes)},
                      {.dtype = DType::kU8, .device = keys_.device()});
    const Launch use(kOp, {&workspace}, {});
    sort(workspace.raw_data(), bytes);
    now_ = 1 - now_;
  }

 private:
  template <typename T>
  T* Row(const Tensor& memory, int64_t row) const {
    return static_cast<T*>(memory.raw_data()) + row * count_;
  }

  const int64_t count_;
  const Tensor keys_, sources_;
  int now_ = 0;
};

void SortSources(const Launch& launch, SortBuffers& buffers, const Tensor& x,
                 bool descending) {
  const int64_t count = x.numel(), size = x.dim(-1);
  const int blocks = launch.Blocks(count, kThreads);
  VisitDeviceType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    KeysKernel<<<blocks, kThreads, 0, launch.stream()>>>(
        static_cast<const T*>(x.raw_data()), buffers.keys(), buffers.sources(),
        count, size, descending);
    launch.Check();
  });
  const bool wide = SizeOf(x.dtype()) == 8;
  const int line_bits = std::bit_width(static_cast<uint64_t>(count / size - 1));
  buffers.Sort(launch, wide ? 64 : 32 + line_bits);
  if (!wide || line_bits == 0) return;
  LinesKernel<<<blocks, kThreads, 0, launch.stream()>>>(
      buffers.sources(), buffers.keys(), count, size);
  launch.Check();
  buffers.Sort(launch, line_bits);
}

}  // namespace

void Sort(const Tensor& values, const Tensor& indices, const Tensor& x,
          bool descending) {
  if (values.numel() == 0) return;
  Require(x.numel() <= std::numeric_limits<int32_t>::max(), kOp, x.numel(),
          " elements are more than a GPU sorts");
  SortBuffers buffers(x.numel(), x.device());
  const Launch launch(
      kOp, {&values, &indices, &buffers.key_memory(), &buffers.source_memory()},
      {&x});
  SortSources(launch, buffers, x, descending);
  const int64_t count = values.numel();
  VisitBits(x.dtype(), [&](auto type) {
    using Unit = typename decltype(type)::type;
    TakeKernel<<<launch.Blocks(count, kThreads), kThreads, 0,
                 launch.stream()>>>(static_cast<const Unit*>(x.raw_data()),
                                    buffers.sources(),
                                    static_cast<Unit*>(values.raw_data()),
                                    static_cast<int64_t*>(indices.raw_data()),
                                    count, x.dim(-1), values.dim(-1));
    launch.Check();
  });
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/cuda/device_types.cuh"
#include "core/cuda/group_reduce.cuh"
#include "core/tensor.h"

// The parts shared by kernels that give each dense row to a group of threads
// (group_reduce.cuh), which reads it in packs.
namespace baton::cuda {

template <int kPack, typename T>
__device__ __forceinline__ void LoadAs(const T* x, int64_t pack,
                                       Compute<T> (&values)[kPack]) {
  const auto loaded = reinterpret_cast<const Pack<T, kPack>*>(x)[pack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) values[j] = As<Compute<T>>(loaded.at[j]);
}

template <int kPack, typename T>
__device__ __forceinline__ void StoreAs(T* y, int64_t pack,
                                        const Compute<T> (&values)[kPack]) {
  Pack<T, kPack> stored;
#pragma unroll
  for (int j = 0; j < kPack; ++j) stored.at[j] = As<T>(values[j]);
  reinterpret_cast<Pack<T, kPack>*>(y)[pack] = stored;
}

// Calls row(index, live, member) for each row of the thread's group. All
// threads of a block make the same number of calls.
template <typename Row>
__device__ __forceinline__ void ForRows(int64_t rows, int group, Row row) {
  const int groups = kGroupThreads / group;
  const int member = static_cast<int>(threadIdx.x) % group;
  for (int64_t first = int64_t{blockIdx.x} * groups; first < rows;
       first += int64_t{gridDim.x} * groups) {
    const int64_t index = first + threadIdx.x / group;
    row(index, index < rows, member);
  }
}

// Returns whether rows of `width` elements consist of whole packs in all of
// `tensors`.
template <typename T>
bool FitPacks(int64_t width, std::initializer_list<const Tensor*> tensors) {
  bool fit = width % kPackSize<T> == 0;
  for (const Tensor* x : tensors) fit = fit && IsAligned(x->raw_data());
  return fit;
}

// Calls run(type of the first tensor, integral constant of the pack's size).
template <typename Run>
void VisitPacks(const char* op, std::initializer_list<const Tensor*> tensors,
                Run run) {
  const Tensor& first = **tensors.begin();
  VisitDeviceFloating(op, first.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (FitPacks<T>(first.dim(-1), tensors)) {
      run(type, std::integral_constant<int, kPackSize<T>>{});
    } else {
      run(type, std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace baton::cuda

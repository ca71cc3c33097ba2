// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/cuda/access.cuh"
#include "core/cuda/batch.cuh"
#include "core/cuda/launch.h"
#include "core/tensor.h"

// How steps read and write parameters on a GPU.
namespace baton::cuda {

// The number of f32 or f64 elements in one access.
template <typename T>
inline constexpr int kStepRun = kPackSize<T>;

// The addresses and types of a parameter's gradient and of its copy in a half
// dtype.
struct StepEnds {
  const void* grad;
  void* lowered;  // may be null
  DType grad_type, lowered_type;
  bool aligned;  // whether all the parameter's arrays are aligned
};

template <typename T>
__device__ __forceinline__ void LoadGrad(const StepEnds& ends, int64_t first,
                                         int64_t left, T (&grad)[kStepRun<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    if (ends.grad_type == DType::kBF16) {
      return LoadAs<__nv_bfloat16>(ends.grad, first, left, ends.aligned, grad);
    }
    if (ends.grad_type == DType::kF16) {
      return LoadAs<__half>(ends.grad, first, left, ends.aligned, grad);
    }
  }
  LoadAs<T>(ends.grad, first, left, ends.aligned, grad);
}

__device__ __forceinline__ uint16_t BitsOf(__nv_bfloat16 x) {
  return __bfloat16_as_ushort(x);
}
__device__ __forceinline__ uint16_t BitsOf(__half x) {
  return __half_as_ushort(x);
}

// Overwrites values with elements of L's copy that differ from the rounded
// values.
template <typename L>
__device__ __forceinline__ void TakeBack(const StepEnds& ends, int64_t first,
                                         int64_t left,
                                         float (&value)[kStepRun<float>]) {
  L lowered[kStepRun<float>];
  LoadSome(static_cast<const L*>(ends.lowered) + first, left, ends.aligned,
           lowered);
#pragma unroll
  for (int i = 0; i < kStepRun<float>; ++i) {
    if (BitsOf(As<L>(value[i])) != BitsOf(lowered[i]))
      value[i] = As<float>(lowered[i]);
  }
}

// Loads the values that a step begins from.
template <typename T>
__device__ __forceinline__ void LoadValue(const void* from,
                                          const StepEnds& ends, int64_t first,
                                          int64_t left,
                                          T (&value)[kStepRun<T>]) {
  LoadAs<T>(from, first, left, ends.aligned, value);
  if constexpr (std::is_same_v<T, float>) {
    if (ends.lowered == nullptr) return;
    if (ends.lowered_type == DType::kBF16) {
      TakeBack<__nv_bfloat16>(ends, first, left, value);
    } else {
      TakeBack<__half>(ends, first, left, value);
    }
  }
}

template <typename T>
__device__ __forceinline__ void StoreLowered(const StepEnds& ends,
                                             int64_t first, int64_t left,
                                             const T (&value)[kStepRun<T>]) {
  if (ends.lowered == nullptr) return;
  if (ends.lowered_type == DType::kBF16) {
    StoreAs<__nv_bfloat16>(ends.lowered, first, left, ends.aligned, value);
  } else {
    StoreAs<__half>(ends.lowered, first, left, ends.aligned, value);
  }
}

inline void* DataOf(const Tensor& x) {
  return x.defined() ? x.raw_data() : nullptr;
}

// `all` contains the value, the gradient, the lowered copy and the state
// tensors.
template <typename T>
StepEnds EndsOf(const Tensor& grad, const Tensor& lowered,
                const std::vector<const Tensor*>& all) {
  StepEnds ends{grad.raw_data(), DataOf(lowered), grad.dtype(),
                lowered.defined() ? lowered.dtype() : DType::kBF16, true};
  for (const Tensor* x : all) {
    if (!x->defined()) continue;
    const size_t bytes = SizeOf(x->dtype()) * kStepRun<T>;
    ends.aligned = ends.aligned && IsAligned(x->raw_data(), bytes);
  }
  return ends;
}

}  // namespace baton::cuda

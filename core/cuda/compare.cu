// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <bit>

#include "core/cuda/bits.cuh"
#include "core/cuda/elementwise.h"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

template <typename T>
struct CompareFn {
  __device__ bool operator()(T left, T right) const {
    const auto a = As<Compute<T>>(left);
    const auto b = As<Compute<T>>(right);
    const bool holds = op == CompareOp::kEqual  ? a == b
                       : op == CompareOp::kLess ? a < b
                                                : a <= b;
    return holds != negate;
  }
  CompareOp op;
  bool negate;
};

struct WhereFn {
  template <typename T>
  __device__ T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

template <typename T>
struct MaskedFillFn {
  __device__ T operator()(T x, bool mask) const { return mask ? value : x; }
  T value;
};

}  // namespace

void Compare(CompareOp op, bool negate, const Tensor& out, const Tensor& a,
             const Tensor& b) {
  const Launch launch("compare", {&out}, {&a, &b});
  VisitDeviceType(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<bool, T, T>(launch, CompareFn<T>{op, negate}, out, a, b);
  });
}

void Where(const Tensor& out, const Tensor& condition, const Tensor& a,
           const Tensor& b) {
  const Launch launch("where", {&out}, {&condition, &a, &b});
  VisitBits(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, bool, T, T>(launch, WhereFn{}, out, condition, a, b);
  });
}

void MaskedFill(const Tensor& out, const Tensor& x, const Tensor& mask,
                double value) {
  const Launch launch("masked_fill", {&out}, {&x, &mask});
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // The bits of the value are the same on the CPU and the GPU.
    const auto filling = std::bit_cast<DeviceType<T>>(Convert<T>(value));
    Map<DeviceType<T>, DeviceType<T>, bool>(
        launch, MaskedFillFn<DeviceType<T>>{filling}, out, x, mask);
  });
}

}  // namespace baton::cuda

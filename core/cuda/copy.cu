// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "core/cuda/bits.cuh"
#include "core/cuda/copy.h"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

struct Same {
  template <typename T>
  __device__ T operator()(T value) const {
    return value;
  }
};

template <typename T>
struct Constant {
  T value;
  __device__ T operator()() const { return value; }
};

// Returns the bytes of `value` as an element of `dtype`.
template <typename Bits>
Bits BitsOf(DType dtype, double value) {
  return VisitDType(dtype, [&](auto type) {
    const auto element = Convert<typename decltype(type)::type>(value);
    Bits bits = 0;
    std::memcpy(&bits, &element, std::min(sizeof(bits), sizeof(element)));
    return bits;
  });
}

}  // namespace

void CopyOnDevice(const Tensor& target, const Tensor& source) {
  if (target.numel() == 0) return;
  const Launch launch("copy", {&target}, {&source});
  if (CopyTransposed(launch, target, source)) return;
  if (target.dtype() != source.dtype()) return Cast(launch, target, source);
  VisitBits(target.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, T>(launch, Same{}, target, source);
  });
}

void FillOnDevice(const Tensor& target, double value) {
  if (target.numel() == 0) return;
  const Launch launch("fill", {&target}, {});
  VisitBits(target.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T>(launch, Constant<T>{BitsOf<T>(target.dtype(), value)}, target);
  });
}

}  // namespace baton::cuda

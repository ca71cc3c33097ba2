// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/arithmetic.cuh"
#include "core/cuda/convert.cuh"
#include "core/cuda/elementwise.h"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

// Chooses the operation within the kernel: large integer tensors are rare, so
// one kernel serves all operations on integers.
struct AnyOp {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    switch (op) {
      case BinaryOp::kAdd:
        return AddOp{}(a, b);
      case BinaryOp::kSub:
        return SubOp{}(a, b);
      case BinaryOp::kMul:
        return MulOp{}(a, b);
      case BinaryOp::kDiv:
        return DivOp{}(a, b);
      case BinaryOp::kMaximum:
        return MaximumOp{}(a, b);
      case BinaryOp::kMinimum:
        return MinimumOp{}(a, b);
      case BinaryOp::kPow:
        break;  // only for floating dtypes
    }
    return a;
  }
  BinaryOp op;
};

template <typename Fn>
void VisitOp(BinaryOp op, Fn&& fn) {
  switch (op) {
    case BinaryOp::kAdd:
      return fn(AddOp{});
    case BinaryOp::kSub:
      return fn(SubOp{});
    case BinaryOp::kMul:
      return fn(MulOp{});
    case BinaryOp::kDiv:
      return fn(DivOp{});
    case BinaryOp::kMaximum:
      return fn(MaximumOp{});
    case BinaryOp::kMinimum:
      return fn(MinimumOp{});
    case BinaryOp::kPow:
      return fn(PowOp{});
  }
}

template <typename C>
struct AddScaledOp {
  __device__ C operator()(C a, C b) const {
    return AddOp{}(a, MulOp{}(b, alpha));
  }
  C alpha;
};

}  // namespace

void Binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b) {
  const Launch launch("binary", {&out}, {&a, &b});
  VisitDeviceType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) {
      MapPacked<1, T, T, T>(launch, Computed<T, AnyOp>{{op}}, out, a, b);
    } else {
      VisitOp(op, [&](auto fn) {
        Map<T, T, T>(launch, Computed<T, decltype(fn)>{}, out, a, b);
      });
    }
  });
}

void AddScaled(const Tensor& out, const Tensor& target, const Tensor& source,
               double alpha) {
  if (alpha == 1) return Binary(BinaryOp::kAdd, out, target, source);
  const Launch launch("add_scaled", {&out}, {&target, &source});
  VisitDeviceType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    Map<T, T, T>(launch, Computed<T, AddScaledOp<C>>{{Convert<C>(alpha)}}, out,
                 target, source);
  });
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <cmath>
#include <type_traits>

#include "core/cpu/binary_ops.h"
#include "core/cpu/elementwise.h"
#include "core/cpu/map.h"
#include "core/cpu/math.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

struct SubOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return Wrapped([](auto x, auto y) { return x - y; }, a, b);
  }
  BATON_SIMD_INLINE bool operator()(bool a, bool b) const { return a ^ b; }
};
struct DivOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return a / b;
  }
};

template <typename Op>
void Run(const Tensor& out, const Tensor& a, const Tensor& b) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, T, T>(kGrain, Computed<T, Op>{}, out, a, b);
  });
}

template <typename T>
void DivideIntegers(const Tensor& out, const Tensor& a, const Tensor& b) {
  std::atomic<bool> zero{false};
  Map<T, T, T>(
      kGrain,
      [&zero](T x, T y) -> T {
        if (y == 0) {
          zero.store(true, std::memory_order_relaxed);
          return 0;
        }
        // Dividing the smallest integer by -1 overflows; the result wraps like
        // a product.
        if (y == static_cast<T>(-1) && std::is_signed_v<T>) {
          return Wrapped([](auto v) { return 0 - v; }, x);
        }
        return static_cast<T>(x / y);
      },
      out, a, b);
  Require(!zero.load(), "div", "division of an integer by zero");
}

void Divide(const Tensor& out, const Tensor& a, const Tensor& b) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) {
      DivideIntegers<T>(out, a, b);
    } else {
      Map<T, T, T>(kGrain, Computed<T, DivOp>{}, out, a, b);
    }
  });
}

struct PowOp {
  template <typename T>
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};

void Raise(const Tensor& out, const Tensor& a, const Tensor& b) {
  constexpr int64_t kCostly = 4096;  // elements, if each takes some nanoseconds
  VisitFloating("pow", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, T, T>(kCostly, Computed<T, PowOp>{}, out, a, b);
  });
}

}  // namespace

void Binary(BinaryOp op, const Tensor& out, const Tensor& a, const Tensor& b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Run<AddOp>(out, a, b);
    case BinaryOp::kSub:
      return Run<SubOp>(out, a, b);
    case BinaryOp::kMul:
      return Run<MulOp>(out, a, b);
    case BinaryOp::kDiv:
      return Divide(out, a, b);
    case BinaryOp::kMaximum:
      return Run<MaximumOp>(out, a, b);
    case BinaryOp::kMinimum:
      return Run<MinimumOp>(out, a, b);
    case BinaryOp::kPow:
      return Raise(out, a, b);
  }
}

void AddScaled(const Tensor& out, const Tensor& target, const Tensor& source,
               double alpha) {
  if (alpha == 1) return Run<AddOp>(out, target, source);
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    const C factor = Convert<C>(alpha);
    Map<T, T, T>(
        kGrain,
        [factor](T a, T b) {
          return Convert<T>(
              AddOp{}(Convert<C>(a), MulOp{}(Convert<C>(b), factor)));
        },
        out, target, source);
  });
}

}  // namespace baton::cpu

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/elementwise.h"
#include "core/cpu/map.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

struct EqualOp {
  template <typename T>
  BATON_SIMD_INLINE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct LessOp {
  template <typename T>
  BATON_SIMD_INLINE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqualOp {
  template <typename T>
  BATON_SIMD_INLINE bool operator()(T a, T b) const {
    return a <= b;
  }
};

template <typename Op>
void Run(bool negate, const Tensor& out, const Tensor& a, const Tensor& b) {
  VisitDType(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = ComputeType<T>;
    Map<bool, T, T>(
        kGrain,
        [negate](T x, T y) {
          return Op{}(Convert<C>(x), Convert<C>(y)) != negate;
        },
        out, a, b);
  });
}

}  // namespace

void Compare(CompareOp op, bool negate, const Tensor& out, const Tensor& a,
             const Tensor& b) {
  switch (op) {
    case CompareOp::kEqual:
      return Run<EqualOp>(negate, out, a, b);
    case CompareOp::kLess:
      return Run<LessOp>(negate, out, a, b);
    case CompareOp::kLessEqual:
      return Run<LessEqualOp>(negate, out, a, b);
  }
}

void Where(const Tensor& out, const Tensor& condition, const Tensor& a,
           const Tensor& b) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map<T, bool, T, T>(
        kGrain, [](bool c, T x, T y) { return c ? x : y; }, out, condition, a,
        b);
  });
}

void MaskedFill(const Tensor& out, const Tensor& x, const Tensor& mask,
                double value) {
  VisitDType(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T filling = Convert<T>(value);
    Map<T, T, bool>(
        kGrain, [filling](T v, bool m) { return m ? filling : v; }, out, x,
        mask);
  });
}

}  // namespace baton::cpu

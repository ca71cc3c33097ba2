// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/combine.h"

#include <type_traits>

#include "core/cpu/binary_ops.h"
#include "core/cpu/simd.h"
#include "core/dtype_visit.h"
#include "core/status.h"

namespace baton::cpu {
namespace {

// Computes (a op b) * scale, rounded once.
template <typename T, typename Op>
struct ScaledOp {
  ComputeType<T> scale;
  BATON_SIMD_INLINE T operator()(T a, T b) const {
    using C = ComputeType<T>;
    return Convert<T>(Op{}(Convert<C>(a), Convert<C>(b)) * scale);
  }
};

struct CombineRow {
  template <typename T, typename Fn>
  BATON_SIMD_INLINE void operator()(Fn fn, int64_t count, const T* a,
                                    const T* b, T* out, T* copy) const {
    if (copy == nullptr) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = fn(a[i], b[i]);
      return;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const T value = fn(a[i], b[i]);
      out[i] = value;
      copy[i] = value;
    }
  }
};

template <typename Op>
void CombineBy(DType dtype, int64_t count, const void* a, const void* b,
               double scale, void* out, void* copy) {
  VisitDType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto run = [&](auto fn) {
      RunSimd(CombineRow{}, fn, count, static_cast<const T*>(a),
              static_cast<const T*>(b), static_cast<T*>(out),
              static_cast<T*>(copy));
    };
    if constexpr (!std::is_integral_v<T>) {
      if (scale != 1)
        return run(ScaledOp<T, Op>{static_cast<ComputeType<T>>(scale)});
    }
    run(Computed<T, Op>{});
  });
}

}  // namespace

void Combine(BinaryOp op, DType dtype, int64_t count, const void* a,
             const void* b, double scale, void* out, void* copy) {
  switch (op) {
    case BinaryOp::kAdd:
      return CombineBy<AddOp>(dtype, count, a, b, scale, out, copy);
    case BinaryOp::kMul:
      return CombineBy<MulOp>(dtype, count, a, b, scale, out, copy);
    case BinaryOp::kMaximum:
      return CombineBy<MaximumOp>(dtype, count, a, b, scale, out, copy);
    case BinaryOp::kMinimum:
      return CombineBy<MinimumOp>(dtype, count, a, b, scale, out, copy);
    default:
      Fail("combine", "no op of several values");
  }
}

}  // namespace baton::cpu

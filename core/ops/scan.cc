// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/scan.h"

#include "core/cpu/scan.h"
#include "core/cuda/scan.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {

Tensor CumSum(const Tensor& x, int axis, bool reverse) {
  constexpr char kOp[] = "cumsum";
  RequireOneDevice(kOp, x);
  if (x.rank() == 0) {
    return CumSum(x.Reshape({1}), axis, reverse).Reshape(Shape());
  }
  const int at = NormalizeAxis(kOp, axis, x.rank());
  const Tensor from = IsFloating(x.dtype()) ? x : x.To(DType::kI64);
  Tensor out = Tensor::EmptyLike(from);
  KernelFor(out, cpu::CumSum, cuda::CumSum)(out, from, at, reverse);
  return out;
}

}  // namespace baton::ops

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/orthonormal.h"

#include "core/cpu/orthonormal.h"
#include "core/cuda/orthonormal.h"
#include "core/ops/checks.h"
#include "core/ops/dispatch.h"

namespace baton::ops {

void OrthonormaliseColumns(const Tensor& matrix) {
  constexpr char kOp[] = "orthonormalise_columns";
  RequireOneDevice(kOp, matrix);
  Require(matrix.rank() == 2 && matrix.IsContiguous() &&
              (matrix.dtype() == DType::kF32 || matrix.dtype() == DType::kF64),
          kOp, "expected a contiguous matrix of f32 or f64, got ",
          matrix.ToString());
  if (matrix.numel() == 0) return;
  matrix.PrepareWrite();
  KernelFor(matrix, cpu::OrthonormaliseColumns,
            cuda::OrthonormaliseColumns)(matrix);
  matrix.BumpVersion();
}

}  // namespace baton::ops

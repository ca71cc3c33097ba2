// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "core/tensor.h"

namespace baton::cuda {

// A column-major matrix (if transposed, its transpose) as a product's operand.
// The matrices of a batch are `step` elements apart.
struct LtMatrix {
  int64_t stride = 0;  // of columns
  int64_t step = 0;
  bool transposed = false;
  int alignment = 1;  // bytes, of every matrix of the batch; up to 256

  auto operator<=>(const LtMatrix&) const = default;
};

// Describes D = A B, or D += A B, with A [m, k], B [k, n] and D [m, n] in
// column-major order. The choice of an algorithm depends only on this.
struct LtProduct {
  DType dtype = DType::kF32;
  bool tf32 = false;
  bool accumulate = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  LtMatrix a, b, d;
  int bias_alignment = 0;  // 0: no bias

  auto operator<=>(const LtProduct&) const = default;
};

// The tensors that hold the matrices; each matrix begins at its offset, in
// elements.
struct LtOperands {
  const Tensor& a;
  const Tensor& b;
  const Tensor& d;
  const Tensor& bias;  // undefined, or what the epilogue reads or writes
  int64_t a_offset = 0, b_offset = 0, d_offset = 0;
};

// Multiplies on the thread's current stream. For each product and device it
// asks the library's heuristics once for an algorithm. If they have none,
// launches nothing and returns false. Thread-safe.
bool Multiply(const char* op, const LtProduct& product,
              const LtOperands& operands);

// Returns the largest power of two, up to 256, that divides the address of
// every matrix of a batch.
int AlignmentOf(const Tensor& tensor, int64_t offset, int64_t step);

}  // namespace baton::cuda

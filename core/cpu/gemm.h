// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace baton::cpu {

// A row-major operand: element (i, j) is at i * stride + j or, if transposed,
// at j * stride + i.
template <typename T>
struct Operand {
  const T* data;
  int64_t stride;
  bool transposed = false;
};

// Computes c = a [m, k] * b [k, n] + beta * c; rows of c are c_stride apart. If
// beta is 0, c is not read. f32 runs on oneDNN and f64 on OpenBLAS, both on the
// calling thread's compute threads.
void Gemm(int64_t m, int64_t n, int64_t k, const Operand<float>& a,
          const Operand<float>& b, float beta, float* c, int64_t c_stride);
void Gemm(int64_t m, int64_t n, int64_t k, const Operand<double>& a,
          const Operand<double>& b, double beta, double* c, int64_t c_stride);

}  // namespace baton::cpu

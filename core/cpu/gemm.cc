// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "core/parallel.h"

namespace baton::cpu {
namespace {

CBLAS_TRANSPOSE Transposed(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

}  // namespace

// OpenBLAS has its own threads, which would compete with OpenMP's. So each call
// runs on one thread, and the rows are split here.
void Gemm(int64_t m, int64_t n, int64_t k, const Operand<double>& a,
          const Operand<double>& b, double beta, double* c, int64_t c_stride) {
  static const bool single = (openblas_set_num_threads(1), true);
  (void)single;
  const int64_t row_work = std::max<int64_t>(n * k, 1);
  ParallelFor(m, std::max<int64_t>(1, 65536 / row_work),
              [&](int64_t begin, int64_t end) {
                const double* rows =
                    a.data + begin * (a.transposed ? 1 : a.stride);
                cblas_dgemm(CblasRowMajor, Transposed(a.transposed),
                            Transposed(b.transposed), end - begin, n, k, 1.0,
                            rows, a.stride, b.data, b.stride, beta,
                            c + begin * c_stride, c_stride);
              });
}

}  // namespace baton::cpu

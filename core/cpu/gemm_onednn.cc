// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/gemm.h"
#include "core/cpu/onednn.h"

namespace baton::cpu {

void Gemm(int64_t m, int64_t n, int64_t k, const Operand<float>& a,
          const Operand<float>& b, float beta, float* c, int64_t c_stride) {
  const dnnl::status status =
      dnnl::sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k,
                  1.0f, a.data, a.stride, b.data, b.stride, beta, c, c_stride);
  Require(status == dnnl::status::success, "matmul", "oneDNN refused m=", m,
          " n=", n, " k=", k);
}

}  // namespace baton::cpu

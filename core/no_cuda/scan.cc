// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/scan.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void CumSum(const Tensor&, const Tensor&, int, bool) {
  FailWithoutCuda("cumsum");
}

}  // namespace baton::cuda

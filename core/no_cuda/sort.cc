// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/sort.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void Sort(const Tensor&, const Tensor&, const Tensor&, bool) {
  FailWithoutCuda("sort");
}

}  // namespace baton::cuda

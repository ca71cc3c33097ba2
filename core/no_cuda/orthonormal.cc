// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/orthonormal.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void OrthonormaliseColumns(const Tensor&) {
  FailWithoutCuda("orthonormalise_columns");
}

}  // namespace baton::cuda

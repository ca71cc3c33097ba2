// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/optimizer.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void SgdStep(const std::vector<ops::SgdTarget>&, const ops::SgdOptions&) {
  FailWithoutCuda("sgd");
}
void AdamStep(const std::vector<ops::AdamTarget>&, const ops::AdamOptions&) {
  FailWithoutCuda("adam");
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/written.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

absl::AnyInvocable<bool()> WhenWritten(const Tensor&) {
  FailWithoutCuda("whether a tensor is written");
}

}  // namespace baton::cuda

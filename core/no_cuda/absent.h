// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/status.h"

namespace baton::cuda {

// Every function of this folder calls this, except DeviceCount.
[[noreturn]] inline void FailWithoutCuda(const char* op) {
  Fail(op,
       "this build of Baton has no CUDA: configure with -DBATON_CUDA=ON on a "
       "machine with the CUDA toolkit and cuDNN",
       absl::StatusCode::kFailedPrecondition);
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/gpu_recording.h"

namespace baton {

absl::StatusOr<std::unique_ptr<GpuRecording>> StartGpuRecording(size_t) {
  return absl::FailedPreconditionError(
      "built without CUPTI, which comes with CUDA 13");
}

}  // namespace baton

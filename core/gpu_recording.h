// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "core/gpu_activity.h"

namespace baton {

// The work of this process's GPUs, while it lives: kernels, of graphs too,
// copies and fills. Recording makes each launch a little slower. Confined to
// one thread at a time.
class GpuRecording {
 public:
  virtual ~GpuRecording() = default;
  // Ends it. What the GPUs have not ended by now is left out: synchronize first
  // to have it.
  virtual GpuActivityLog Take() = 0;
};

// Of at most `limit` activities; one at a time in a process. FailedPrecondition
// says what is missing here (a build with CUDA, CUPTI, a GPU), AlreadyExists
// that another one is under way. Thread-safe.
absl::StatusOr<std::unique_ptr<GpuRecording>> StartGpuRecording(size_t limit);

}  // namespace baton

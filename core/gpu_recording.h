// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "core/gpu_activity.h"

namespace baton {

// Records the work of this process's GPUs as long as it lives: kernels (also in
// graphs), copies and fills. It makes each launch a little slower. Confined to
// one thread at a time.
class GpuRecording {
 public:
  virtual ~GpuRecording() = default;
  // Ends the recording. Leaves out work that GPUs have not finished: to include
  // it, synchronize first.
  virtual GpuActivityLog Take() = 0;
};

// Begins a recording of at most `limit` activities; a process can have one at a
// time. FailedPrecondition says what is missing (a build with CUDA, CUPTI, a
// GPU), AlreadyExists that another recording is in progress. Thread-safe.
absl::StatusOr<std::unique_ptr<GpuRecording>> StartGpuRecording(size_t limit);

}  // namespace baton

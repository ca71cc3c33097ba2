// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/cuda/capture_streams.h"
#include "core/storage.h"
#include "core/tensor.h"

namespace baton::cuda {

bool IsCapturing(cudaStream_t stream);

// While the scope lives, the calling thread may make calls that a capture
// forbids, such as cudaMalloc, because they do not touch what is captured.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// What the calling thread's capture uses and has collected.
struct CaptureLog {
  explicit CaptureLog(int id) : pool(id), streams(id) {}

  const int pool;  // the allocator's, for the capture's memory
  CaptureStreams streams;
  std::vector<std::weak_ptr<Storage>> written, read;
  // Pinned memory through which copies of the capture go. The graph owns it
  // from now on.
  struct PinnedBlock {
    void* data;
    size_t bytes;
  };
  std::vector<PinnedBlock> pinned;
  std::vector<std::function<void()>> after_replay;  // see Graph::AfterReplay
};
// Returns null while the thread captures nothing.
CaptureLog*& CurrentCapture();
// Within a capture, notes that a copy reads and writes these.
void NoteCopy(const Tensor& target, const Tensor& source);

}  // namespace baton::cuda

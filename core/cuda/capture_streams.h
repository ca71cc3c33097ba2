// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace baton::cuda {

// CUDA streams that one capture has for its own. While a thread captures, the
// streams that core/cuda/stream.h numbers are these to it and the common ones
// to all other threads: so nothing that those give to their streams is
// captured, and no wait of theirs meets a stream that captures. A stream joins
// the capture, at its beginning, when it is first asked for. Confined to the
// capturing thread.
class CaptureStreams {
 public:
  // `pool` makes the positions of this capture differ from those of others.
  explicit CaptureStreams(int pool) : pool_(static_cast<uint64_t>(pool)) {}
  ~CaptureStreams();
  CaptureStreams(const CaptureStreams&) = delete;
  CaptureStreams& operator=(const CaptureStreams&) = delete;

  // From then on the calling thread captures.
  void Begin(int device, int stream);
  // What all streams were given.
  cudaGraph_t End();
  // Ends a capture that has not ended; what it recorded is lost.
  void Abandon();

  cudaStream_t Native(int device, int stream);

  // As in core/cuda/stream.h.
  void Mark(int device, int stream);
  uint64_t Position(int device, int stream);
  void Wait(int waiter_device, int waiter, int awaited_device, int awaited);
  void Wait(int waiter_device, int waiter, int awaited_device, int awaited,
            uint64_t position);

 private:
  using Place = std::pair<int, int>;  // device and stream
  struct Captured {
    cudaStream_t stream = nullptr;
    std::vector<cudaEvent_t> marks = {};
  };

  Captured& Join(const Place& place);
  cudaEvent_t Record(const Captured& of, int device);

  const uint64_t pool_;
  std::map<Place, Captured> streams_;
  Place origin_;
  cudaEvent_t beginning_ = nullptr;
  bool captures_ = false;
  std::vector<cudaEvent_t> events_;  // all of them
};

}  // namespace baton::cuda

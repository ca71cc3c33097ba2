// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace baton::cuda {

// The CUDA streams of one capture. While a thread captures, the stream numbers
// of core/cuda/stream.h mean these streams on that thread, and the common ones
// on all other threads. So the capture records nothing that other threads give
// to their streams, and none of their waits meets a stream that captures. A
// stream joins the beginning of the capture when it is first asked for.
// Confined to the capturing thread.
class CaptureStreams {
 public:
  // `pool` makes the positions of this capture differ from those of others.
  explicit CaptureStreams(int pool) : pool_(static_cast<uint64_t>(pool)) {}
  ~CaptureStreams();
  CaptureStreams(const CaptureStreams&) = delete;
  CaptureStreams& operator=(const CaptureStreams&) = delete;

  // Begins the capture on the calling thread.
  void Begin(int device, int stream);
  // Ends the capture and returns what all its streams were given.
  cudaGraph_t End();
  // Ends a capture that has not ended; what it recorded is lost.
  void Abandon();

  cudaStream_t Native(int device, int stream);

  // See core/cuda/stream.h.
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
  std::vector<cudaEvent_t> events_;  // all that the capture has made
};

}  // namespace baton::cuda

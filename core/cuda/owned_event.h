// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/stream.h"

// Events of GPUs that threads of any device ask, and drop: for as long as that
// takes the event's GPU is the thread's.
namespace baton::cuda {

// Destroys the event, of this GPU, when dropped.
std::shared_ptr<void> OwnEvent(cudaEvent_t event, int device);

// Whether what was recorded of it has ended. True, with a warning, where the
// device has failed.
bool OwnedEventHasEnded(void* event, int device);

// A point in the work of a GPU's stream, which copies of this share. Both calls
// that throw do so for what the device reports.
class StreamPoint {
 public:
  // None yet; throws Error.
  explicit StreamPoint(const Stream& stream);
  // Behind what the stream has been given by now; throws Error.
  void Record();
  // Whether the stream has got there, as OwnedEventHasEnded; on any thread.
  bool operator()() const;

 private:
  Stream stream_;
  std::shared_ptr<void> event_;
};

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "core/stream.h"

// Events of GPUs that threads of any device may query and destroy: the
// functions make the event's GPU the thread's while they run.
namespace baton::cuda {

// Destroys the event, of this GPU, with the last copy of the result.
std::shared_ptr<void> OwnEvent(cudaEvent_t event, int device);

// Returns whether the work before the event's last record has ended. If the
// device has failed, logs a warning and returns true.
bool OwnedEventHasEnded(void* event, int device);

// A point in the work of a GPU's stream; copies share it. The two functions
// that throw do so for what the device reports.
class StreamPoint {
 public:
  // Makes a point that is not recorded yet; throws Error.
  explicit StreamPoint(const Stream& stream);
  // Moves the point behind the present work of the stream; throws Error.
  void Record();
  // Returns whether the stream has reached the point, like OwnedEventHasEnded;
  // any thread may call it.
  bool operator()() const;

 private:
  Stream stream_;
  std::shared_ptr<void> event_;
};

}  // namespace baton::cuda

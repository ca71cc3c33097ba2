// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/stream.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void* StreamHandle(int, int) { FailWithoutCuda("stream"); }
void SynchronizeStream(int, int) { FailWithoutCuda("synchronize"); }
void Adopt(int, int, void*) { FailWithoutCuda("stream"); }
void Disown(int, int) { FailWithoutCuda("stream"); }
void SynchronizeDevice(int) { FailWithoutCuda("synchronize"); }
void WaitForStream(int, int, int, int) { FailWithoutCuda("stream"); }
void CallAfter(int, int, std::function<void(absl::Status)>) {
  FailWithoutCuda("stream");
}
// These only matter for recordings, and without CUDA there are none.
void MarkStream(int, int) {}
uint64_t StreamPosition(int, int) { return 0; }
void WaitForStream(int, int, int, int, uint64_t) { FailWithoutCuda("stream"); }
std::shared_ptr<void> MakeEvent(int) { FailWithoutCuda("event"); }
void RecordEvent(void*, int, int) { FailWithoutCuda("event"); }
void RecordEventTime(void*, int, int) { FailWithoutCuda("event"); }
void WaitForEvent(void*, int, int) { FailWithoutCuda("event"); }
bool EventHasEnded(void*) { FailWithoutCuda("event"); }
void SynchronizeEvent(void*) { FailWithoutCuda("event"); }
double MillisecondsBetween(void*, void*) { FailWithoutCuda("event"); }

}  // namespace baton::cuda

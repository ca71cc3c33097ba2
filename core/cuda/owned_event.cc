// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/owned_event.h"

#include "core/cuda/handles.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/log.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "event";

cudaEvent_t EventOf(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

std::shared_ptr<void> OwnEvent(cudaEvent_t event, int device) {
  return std::shared_ptr<void>(event, [device](void* made) {
    OnDevice(device, [&] { cudaEventDestroy(EventOf(made)); });
  });
}

bool OwnedEventHasEnded(void* event, int device) {
  cudaError_t error = cudaSuccess;
  OnDevice(device, [&] {
    error = cudaEventQuery(EventOf(event));
    if (error != cudaSuccess) cudaGetLastError();
  });
  if (error != cudaErrorNotReady && error != cudaSuccess)
    LogWarning("an event of cuda:", device, ": ", cudaGetErrorString(error));
  return error != cudaErrorNotReady;
}

StreamPoint::StreamPoint(const Stream& stream) : stream_(stream) {
  const int device = stream.device().index();
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  event_ = OwnEvent(event, device);
}

void StreamPoint::Record() {
  const DeviceScope scope(stream_.device().index());
  Check(kOp, cudaEventRecord(EventOf(event_.get()), NativeStream(stream_)));
}

bool StreamPoint::operator()() const {
  return OwnedEventHasEnded(event_.get(), stream_.device().index());
}

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/stream.h"

#include <array>
#include <atomic>

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr int kMaxDevices = 64;

// A stream, and the event that others wait for.
class Queue {
 public:
  cudaStream_t stream(int device, bool companion) {
    cudaStream_t made = stream_.load(std::memory_order_acquire);
    return made != nullptr ? made : Make(device, companion);
  }

  // Runs wait(event) after recording the event: later records do not change
  // what was waited for.
  template <typename Wait>
  void Signal(int device, cudaStream_t stream, Wait wait) {
    MutexLock lock(mutex_);
    if (event_ == nullptr) {
      const DeviceScope scope(device);
      Check("stream",
            cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    }
    Check("stream", cudaEventRecord(event_, stream));
    wait(event_);
  }

 private:
  cudaStream_t Make(int device, bool companion) {
    MutexLock lock(mutex_);
    cudaStream_t made = stream_.load(std::memory_order_acquire);
    if (made != nullptr) return made;
    const DeviceScope scope(device);
    const RelaxedCapture relaxed;
    int least = 0, greatest = 0;
    Check("stream", cudaDeviceGetStreamPriorityRange(&least, &greatest));
    Check("stream", cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking,
                                                 companion ? least : greatest));
    stream_.store(made, std::memory_order_release);
    return made;
  }

  std::atomic<cudaStream_t> stream_{nullptr};
  Mutex mutex_;
  cudaEvent_t event_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

Queue& QueueOf(int device, int stream) {
  Require(device >= 0 && device < kMaxDevices && stream >= 0 &&
              stream < kAllStreams,
          "stream", "no stream ", stream, " of cuda:", device);
  // Never destroyed: threads may still use them while the process ends.
  static auto* const queues =
      new std::array<std::array<Queue, kAllStreams>, kMaxDevices>;
  return (*queues)[static_cast<size_t>(device)][static_cast<size_t>(stream)];
}

cudaStream_t NativeOf(int device, int stream) {
  return QueueOf(device, stream)
      .stream(device, stream >= kStreams + kCopyStreams);
}

cudaEvent_t EventOf(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

cudaStream_t NativeStream(const Stream& stream) {
  return NativeOf(stream.device().index(), stream.index());
}

void* StreamHandle(int device, int stream) { return NativeOf(device, stream); }

void SynchronizeStream(int device, int stream) {
  const DeviceScope scope(device);
  Check("synchronize", cudaStreamSynchronize(NativeOf(device, stream)));
}

void SynchronizeDevice(int device) {
  const DeviceScope scope(device);
  Check("synchronize", cudaDeviceSynchronize());
}

void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited) {
  cudaStream_t late = NativeOf(waiter_device, waiter);
  cudaStream_t early = NativeOf(awaited_device, awaited);
  // A capture begins when the device is idle, so nothing outside of it is left
  // to wait for; and a wait for it would be an error.
  if (IsCapturing(late) && !IsCapturing(early)) return;
  QueueOf(awaited_device, awaited)
      .Signal(awaited_device, early, [&](cudaEvent_t event) {
        Check("stream", cudaStreamWaitEvent(late, event, 0));
      });
}

std::shared_ptr<void> MakeEvent(int device) {
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check("event", cudaEventCreate(&event));
  return std::shared_ptr<void>(
      event, [](void* made) { cudaEventDestroy(EventOf(made)); });
}

void RecordEvent(void* event, int device, int stream) {
  Check("event", cudaEventRecord(EventOf(event), NativeOf(device, stream)));
}

void RecordEventTime(void* event, int device, int stream) {
  cudaStream_t native = NativeOf(device, stream);
  Check("event",
        cudaEventRecordWithFlags(EventOf(event), native,
                                 IsCapturing(native) ? cudaEventRecordExternal
                                                     : cudaEventRecordDefault));
}

void WaitForEvent(void* event, int device, int stream) {
  Check("event",
        cudaStreamWaitEvent(NativeOf(device, stream), EventOf(event), 0));
}

bool EventHasEnded(void* event) {
  const cudaError_t error = cudaEventQuery(EventOf(event));
  if (error == cudaErrorNotReady) return false;
  Check("event", error);
  return true;
}

void SynchronizeEvent(void* event) {
  Check("event", cudaEventSynchronize(EventOf(event)));
}

double MillisecondsBetween(void* earlier, void* later) {
  float milliseconds = 0;
  Check("event",
        cudaEventElapsedTime(&milliseconds, EventOf(earlier), EventOf(later)));
  return milliseconds;
}

}  // namespace baton::cuda

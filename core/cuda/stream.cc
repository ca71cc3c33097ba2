// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/stream.h"

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr int kMaxDevices = 64;

cudaEvent_t NewEvent() {
  cudaEvent_t event = nullptr;
  Check("stream", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

// Positions of a capture: its pool, then the count of marks.
constexpr int kPoolShift = 32;
uint64_t PoolOf(uint64_t position) { return position >> kPoolShift; }
uint64_t CurrentPool() {
  const CaptureLog* capture = CurrentCapture();
  return capture == nullptr ? 0 : static_cast<uint64_t>(capture->pool);
}

// A stream, and the events that others wait for.
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
      event_ = NewEvent();
    }
    Check("stream", cudaEventRecord(event_, stream));
    wait(event_);
  }

  // As above for the mark at `position`, where it has been made.
  template <typename Wait>
  void SignalAt(uint64_t position, int device, cudaStream_t stream, Wait wait) {
    {
      MutexLock lock(mutex_);
      const auto index = static_cast<size_t>(static_cast<uint32_t>(position));
      if (PoolOf(position) == pool_ && index < marked_) {
        wait(marks_[index]);
        return;
      }
    }
    Signal(device, stream, wait);
  }

  void Mark(uint64_t pool, int device, cudaStream_t stream) {
    MutexLock lock(mutex_);
    EnterLocked(pool);
    if (marked_ == marks_.size()) {
      const DeviceScope scope(device);
      marks_.push_back(NewEvent());
    }
    Check("stream", cudaEventRecord(marks_[marked_], stream));
    ++marked_;
  }

  uint64_t Position(uint64_t pool) {
    MutexLock lock(mutex_);
    EnterLocked(pool);
    return pool << kPoolShift | marked_;
  }

 private:
  void EnterLocked(uint64_t pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(pool_, pool) != pool) marked_ = 0;
  }

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
  uint64_t pool_ ABSL_GUARDED_BY(mutex_) = 0;  // of the capture of the marks
  size_t marked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<cudaEvent_t> marks_ ABSL_GUARDED_BY(mutex_);  // some to come
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

void MarkStream(int device, int stream) {
  const uint64_t pool = CurrentPool();
  if (pool == 0) return;
  cudaStream_t native = NativeOf(device, stream);
  if (IsCapturing(native)) QueueOf(device, stream).Mark(pool, device, native);
}

void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited) {
  MarkStream(waiter_device, waiter);  // what it has been given does not wait
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

uint64_t StreamPosition(int device, int stream) {
  const uint64_t pool = CurrentPool();
  return pool == 0 ? 0 : QueueOf(device, stream).Position(pool);
}

void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited, uint64_t position) {
  const uint64_t pool = CurrentPool();
  if (pool == 0)
    return WaitForStream(waiter_device, waiter, awaited_device, awaited);
  // Given before the capture, which began when the device was idle.
  if (PoolOf(position) != pool) return;
  cudaStream_t late = NativeOf(waiter_device, waiter);
  cudaStream_t early = NativeOf(awaited_device, awaited);
  if (!IsCapturing(early)) return;
  MarkStream(waiter_device, waiter);
  QueueOf(awaited_device, awaited)
      .SignalAt(position, awaited_device, early, [&](cudaEvent_t event) {
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

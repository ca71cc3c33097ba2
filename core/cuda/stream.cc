// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/stream.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr int kMaxDevices = 64;
// One of them may be waiting for a GPU, for example while memory is unpinned.
constexpr int kCallThreads = 2;

cudaEvent_t NewEvent() {
  cudaEvent_t event = nullptr;
  Check("stream", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

// A CUDA stream, and the event by which other streams wait for it.
class Queue {
 public:
  // Null before its first use.
  cudaStream_t made() const { return stream_.load(std::memory_order_acquire); }
  cudaStream_t stream(int device, StreamPriority priority) {
    cudaStream_t found = made();
    return found != nullptr ? found : Make(device, priority);
  }

  // Uses `adopted` from now on or, if it is null, a stream of its own again.
  void Replace(cudaStream_t adopted) {
    MutexLock lock(mutex_);
    stream_.store(adopted, std::memory_order_release);
  }

  // Calls wait(event) after recording the event, before anyone records it
  // again.
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

 private:
  cudaStream_t Make(int device, StreamPriority priority) {
    MutexLock lock(mutex_);
    cudaStream_t found = made();
    if (found != nullptr) return found;
    found = NewStream(device, priority);
    stream_.store(found, std::memory_order_release);
    return found;
  }

  std::atomic<cudaStream_t> stream_{nullptr};
  Mutex mutex_;
  cudaEvent_t event_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

Queue& QueueOf(int device, int stream) {
  Require(device >= 0 && device < kMaxDevices && stream >= 0 &&
              stream < kAllStreams,
          "stream", "no stream ", stream, " of cuda:", device);
  // Never destroyed, because threads may still use the streams while the
  // process ends.
  static auto* const queues =
      new std::array<std::array<Queue, kAllStreams>, kMaxDevices>;
  return (*queues)[static_cast<size_t>(device)][static_cast<size_t>(stream)];
}

cudaStream_t NativeOf(int device, int stream) {
  if (CaptureLog* capture = CurrentCapture())
    return capture->streams.Native(device, stream);
  return QueueOf(device, stream).stream(device, PriorityOf(stream));
}

cudaEvent_t EventOf(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

cudaStream_t NativeStream(const Stream& stream) {
  return NativeOf(stream.device().index(), stream.index());
}

cudaStream_t NewStream(int device, StreamPriority priority) {
  const DeviceScope scope(device);
  const RelaxedCapture relaxed;
  int low = 0, high = 0;  // high is the lower number
  Check("stream", cudaDeviceGetStreamPriorityRange(&low, &high));
  const int usual = std::min(high + 1, low);
  cudaStream_t made = nullptr;
  Check("stream", cudaStreamCreateWithPriority(
                      &made, cudaStreamNonBlocking,
                      priority == StreamPriority::kLow    ? low
                      : priority == StreamPriority::kHigh ? high
                                                          : usual));
  return made;
}

void* StreamHandle(int device, int stream) { return NativeOf(device, stream); }

void SynchronizeStream(int device, int stream) {
  const DeviceScope scope(device);
  Check("synchronize", cudaStreamSynchronize(NativeOf(device, stream)));
}

// Waits for the present work before the handle changes, because whoever waits
// for the stream, by its number, must not miss that work.
void Adopt(int device, int stream, void* handle) {
  Require(CurrentCapture() == nullptr, "stream",
          "no stream is adopted within a recording");
  const DeviceScope scope(device);
  Queue& queue = QueueOf(device, stream);
  if (cudaStream_t own = queue.made()) {
    Check("stream", cudaStreamSynchronize(own));
    Check("stream", cudaStreamDestroy(own));
  }
  queue.Replace(handle == nullptr ? cudaStreamLegacy
                                  : static_cast<cudaStream_t>(handle));
}

void Disown(int device, int stream) {
  Require(CurrentCapture() == nullptr, "stream",
          "no stream is released within a recording");
  const DeviceScope scope(device);
  Queue& queue = QueueOf(device, stream);
  Check("stream", cudaStreamSynchronize(queue.made()));
  queue.Replace(nullptr);
}

// Waits for the streams one by one, because waiting for the whole device would
// end a capture of another thread.
void SynchronizeDevice(int device) {
  Require(CurrentCapture() == nullptr, "synchronize",
          "nothing can be waited for within a recording");
  const DeviceScope scope(device);
  for (int stream = 0; stream < kAllStreams; ++stream) {
    cudaStream_t made = QueueOf(device, stream).made();
    if (made != nullptr) Check("synchronize", cudaStreamSynchronize(made));
  }
}

void MarkStream(int device, int stream) {
  if (CaptureLog* capture = CurrentCapture())
    capture->streams.Mark(device, stream);
}

void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited) {
  if (CaptureLog* capture = CurrentCapture()) {
    return capture->streams.Wait(waiter_device, waiter, awaited_device,
                                 awaited);
  }
  cudaStream_t late = NativeOf(waiter_device, waiter);
  cudaStream_t early = NativeOf(awaited_device, awaited);
  QueueOf(awaited_device, awaited)
      .Signal(awaited_device, early, [&](cudaEvent_t event) {
        Check("stream", cudaStreamWaitEvent(late, event, 0));
      });
}

// A callback delays later work of its stream, so callbacks have a stream of
// their own. `then` runs on a thread that may use the device; CUDA's thread may
// not.
void CallAfter(int device, int stream, std::function<void(absl::Status)> then) {
  Require(CurrentCapture() == nullptr, "stream",
          "nothing is called back from a recording");
  static auto* const streams = new std::array<Queue, kMaxDevices>;
  static auto* const threads = new ThreadPool(kCallThreads, "gpu-calls");
  cudaStream_t calls = (*streams)[static_cast<size_t>(device)].stream(
      device, StreamPriority::kLow);
  QueueOf(device, stream)
      .Signal(device, NativeOf(device, stream), [&](cudaEvent_t event) {
        Check("stream", cudaStreamWaitEvent(calls, event, 0));
      });
  using Then = std::function<void(absl::Status)>;
  auto kept = std::make_unique<Then>(std::move(then));
  const auto post = [](cudaStream_t, cudaError_t result, void* given) {
    threads->Post(
        [result, call = std::unique_ptr<Then>(static_cast<Then*>(given))] {
          (*call)(CatchErrors([&] { Check("stream", result); }));
        });
  };
  const DeviceScope scope(device);
  // cudaLaunchHostFunc, which replaces this, does not call if the device fails.
  Check("stream", cudaStreamAddCallback(calls, post, kept.get(), 0));
  kept.release();
}

uint64_t StreamPosition(int device, int stream) {
  CaptureLog* capture = CurrentCapture();
  return capture == nullptr ? 0 : capture->streams.Position(device, stream);
}

void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited, uint64_t position) {
  if (CaptureLog* capture = CurrentCapture()) {
    return capture->streams.Wait(waiter_device, waiter, awaited_device, awaited,
                                 position);
  }
  WaitForStream(waiter_device, waiter, awaited_device, awaited);
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

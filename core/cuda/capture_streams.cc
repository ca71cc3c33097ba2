// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/capture_streams.h"

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/cuda/stream.h"
#include "core/mutex.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "graph";

// Streams that no capture uses now. Never destroyed, because a library's handle
// may still name the stream that it was last given.
class IdleStreams {
 public:
  using Kind = std::pair<int, StreamPriority>;  // with the device

  static IdleStreams& Get() {
    static auto* const streams = new IdleStreams;
    return *streams;
  }
  static Kind KindOf(int device, int stream) {
    return {device, PriorityOf(stream)};
  }

  cudaStream_t Take(const Kind& kind) {
    {
      MutexLock lock(mutex_);
      std::vector<cudaStream_t>& idle = idle_[kind];
      if (!idle.empty()) {
        cudaStream_t stream = idle.back();
        idle.pop_back();
        return stream;
      }
    }
    return NewStream(kind.first, kind.second);
  }
  void Give(const Kind& kind, cudaStream_t stream) {
    MutexLock lock(mutex_);
    idle_[kind].push_back(stream);
  }

 private:
  Mutex mutex_;
  std::map<Kind, std::vector<cudaStream_t>> idle_ ABSL_GUARDED_BY(mutex_);
};

// A position in a capture consists of the capture's pool and the number of
// marks.
constexpr int kPoolShift = 32;

}  // namespace

CaptureStreams::~CaptureStreams() {
  Abandon();
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  for (const auto& [place, captured] : streams_) {
    if (captured.stream == nullptr) continue;
    IdleStreams::Get().Give(IdleStreams::KindOf(place.first, place.second),
                            captured.stream);
  }
}

void CaptureStreams::Begin(int device, int stream) {
  origin_ = {device, stream};
  const DeviceScope scope(device);
  Captured& origin = streams_[origin_];
  origin.stream = IdleStreams::Get().Take(IdleStreams::KindOf(device, stream));
  Check(kOp, cudaStreamBeginCapture(origin.stream,
                                    cudaStreamCaptureModeThreadLocal));
  captures_ = true;
  beginning_ = Record(origin, device);
}

void CaptureStreams::Abandon() {
  if (!std::exchange(captures_, false)) return;
  cudaGraph_t broken = nullptr;
  cudaStreamEndCapture(streams_[origin_].stream, &broken);
  if (broken != nullptr) cudaGraphDestroy(broken);
  cudaGetLastError();
}

cudaGraph_t CaptureStreams::End() {
  Captured& origin = streams_[origin_];
  for (const auto& [place, captured] : streams_) {
    if (place == origin_) continue;
    Check(kOp,
          cudaStreamWaitEvent(origin.stream, Record(captured, place.first), 0));
  }
  captures_ = false;
  cudaGraph_t graph = nullptr;
  Check(kOp, cudaStreamEndCapture(origin.stream, &graph));
  return graph;
}

// The event lives as long as this object.
cudaEvent_t CaptureStreams::Record(const Captured& of, int device) {
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  events_.push_back(event);
  Check(kOp, cudaEventRecord(event, of.stream));
  return event;
}

CaptureStreams::Captured& CaptureStreams::Join(const Place& place) {
  Captured& captured = streams_[place];
  if (captured.stream != nullptr) return captured;
  const RelaxedCapture relaxed;
  const DeviceScope scope(place.first);
  captured.stream =
      IdleStreams::Get().Take(IdleStreams::KindOf(place.first, place.second));
  Check(kOp, cudaStreamWaitEvent(captured.stream, beginning_, 0));
  return captured;
}

cudaStream_t CaptureStreams::Native(int device, int stream) {
  return Join({device, stream}).stream;
}

void CaptureStreams::Mark(int device, int stream) {
  Captured& captured = Join({device, stream});
  captured.marks.push_back(Record(captured, device));
}

uint64_t CaptureStreams::Position(int device, int stream) {
  return pool_ << kPoolShift | Join({device, stream}).marks.size();
}

void CaptureStreams::Wait(int waiter_device, int waiter, int awaited_device,
                          int awaited) {
  Mark(waiter_device, waiter);  // its earlier work does not wait
  const auto early = streams_.find({awaited_device, awaited});
  if (early == streams_.end()) return;  // it has no work yet
  Check(kOp, cudaStreamWaitEvent(Native(waiter_device, waiter),
                                 Record(early->second, awaited_device), 0));
}

void CaptureStreams::Wait(int waiter_device, int waiter, int awaited_device,
                          int awaited, uint64_t position) {
  // That work was enqueued before the capture, and a replay as a whole waits
  // for it.
  if (position >> kPoolShift != pool_) return;
  const Captured& early = Join({awaited_device, awaited});
  const auto index = static_cast<size_t>(static_cast<uint32_t>(position));
  if (index >= early.marks.size())
    return Wait(waiter_device, waiter, awaited_device, awaited);
  Mark(waiter_device, waiter);
  Check(kOp, cudaStreamWaitEvent(Native(waiter_device, waiter),
                                 early.marks[index], 0));
}

}  // namespace baton::cuda

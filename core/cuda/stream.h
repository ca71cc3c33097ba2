// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"

// Implements core/stream.h on GPUs. core/no_cuda has the same symbols. Streams
// are numbered from 0 on each device; handles are cudaStream_t and cudaEvent_t.
// All functions throw Error for what the device reports.
namespace baton::cuda {

inline constexpr int kDealtStreams = 31;   // from 1; 0 is the default
inline constexpr int kThreadStreams = 32;  // after those
inline constexpr int kStreams = 1 + kDealtStreams + kThreadStreams;
inline constexpr int kCopyStreams = 16;  // numbered after all these
// The next numbers are the companions, as many as there are streams other than
// those for copies, and then the streams of collectives.
inline constexpr int kCollectiveStreams = 8;
inline constexpr int kFirstCollective = kStreams + kCopyStreams + kStreams;
// The last numbers are adopted streams, which others own.
inline constexpr int kAdoptedStreams = 16;
inline constexpr int kFirstAdopted = kFirstCollective + kCollectiveStreams;
inline constexpr int kAllStreams = kFirstAdopted + kAdoptedStreams;

// Of kernels that are ready, a GPU starts those of higher priority first. Other
// GPUs wait for what follows a copy, such as a flag that is raised after it: a
// kernel of one thread, which would else wait until a large kernel that began
// before it has started its last blocks. Nobody waits for companions.
enum class StreamPriority { kLow, kUsual, kHigh };
inline StreamPriority PriorityOf(int stream) {
  if (stream < kStreams || stream >= kFirstCollective)
    return StreamPriority::kUsual;
  return stream < kStreams + kCopyStreams ? StreamPriority::kHigh
                                          : StreamPriority::kLow;
}

void* StreamHandle(int device, int stream);
void SynchronizeStream(int device, int stream);
// Makes later work of `stream`, which must be at least kFirstAdopted, go to
// `handle` (null: the legacy stream), after the earlier work of `stream`, until
// Disown, which waits for that work. A stream without a handle has one of its
// own.
void Adopt(int device, int stream, void* handle);
void Disown(int device, int stream);
// Waits for all of the device's streams that exist.
void SynchronizeDevice(int device);
// Makes later work of `waiter` wait for the present work of `awaited`.
void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited);

// Calls `then` on a thread of its own when the present work of the stream has
// ended, or with the device's error.
void CallAfter(int device, int stream, std::function<void(absl::Status)> then);

// Within a capture, streams remember marks between pieces of their work, so
// that one stream may wait for a part of another's work: the position of a
// stream is that of its next mark. Outside of captures positions are 0 and mean
// all present work.
void MarkStream(int device, int stream);
uint64_t StreamPosition(int device, int stream);
void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited, uint64_t position);

std::shared_ptr<void> MakeEvent(int device);
void RecordEvent(void* event, int device, int stream);
// Within a capture, the time is recorded at each launch of the graph.
void RecordEventTime(void* event, int device, int stream);
void WaitForEvent(void* event, int device, int stream);
bool EventHasEnded(void* event);
void SynchronizeEvent(void* event);
double MillisecondsBetween(void* earlier, void* later);

}  // namespace baton::cuda

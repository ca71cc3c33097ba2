// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"

// What core/stream.h is made of on GPUs. core/no_cuda has the same symbols.
// Streams are numbered from 0 on each device; handles are cudaStream_t and
// cudaEvent_t. All throw Error for what the device reports.
namespace baton::cuda {

inline constexpr int kDealtStreams = 31;   // from 1, as 0 is the default
inline constexpr int kThreadStreams = 32;  // after those
inline constexpr int kStreams = 1 + kDealtStreams + kThreadStreams;
inline constexpr int kCopyStreams = 16;  // numbered after all these
// After those come as many companions as there are streams without copies, and
// then those of collectives.
inline constexpr int kCollectiveStreams = 8;
inline constexpr int kFirstCollective = kStreams + kCopyStreams + kStreams;
// Last come those that others own.
inline constexpr int kAdoptedStreams = 16;
inline constexpr int kFirstAdopted = kFirstCollective + kCollectiveStreams;
inline constexpr int kAllStreams = kFirstAdopted + kAdoptedStreams;
inline bool IsCompanion(int stream) {
  return stream >= kStreams + kCopyStreams && stream < kFirstCollective;
}

void* StreamHandle(int device, int stream);
void SynchronizeStream(int device, int stream);
// The work of `stream`, from kFirstAdopted, goes to `handle` (null: the legacy
// stream), from after what the stream was given before, until Disown, which
// waits for it. A stream without a handle has one of its own.
void Adopt(int device, int stream, void* handle);
void Disown(int device, int stream);
// All of these streams that there are.
void SynchronizeDevice(int device);
// `waiter` waits for what `awaited` has been given by now.
void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited);

// Calls `then` on a thread of its own when the stream has done what it has been
// given by now, or with the device's error.
void CallAfter(int device, int stream, std::function<void(absl::Status)> then);

// Within a capture streams remember marks between pieces of their work, so that
// one may wait for less than all: the position of a stream is that of its next
// mark. Outside of captures positions are 0 and mean all by now.
void MarkStream(int device, int stream);
uint64_t StreamPosition(int device, int stream);
void WaitForStream(int waiter_device, int waiter, int awaited_device,
                   int awaited, uint64_t position);

std::shared_ptr<void> MakeEvent(int device);
void RecordEvent(void* event, int device, int stream);
// Within a capture: at each launch of the graph.
void RecordEventTime(void* event, int device, int stream);
void WaitForEvent(void* event, int device, int stream);
bool EventHasEnded(void* event);
void SynchronizeEvent(void* event);
double MillisecondsBetween(void* earlier, void* later);

}  // namespace baton::cuda

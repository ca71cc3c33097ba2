// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/stream.h"
#include "core/tensor.h"

// GPU memory and events that other processes of this machine open (CUDA IPC).
// Handles are bytes that mean something in those processes alone. core/no_cuda
// has the same symbols. All throw Error for what the device reports.
namespace baton::cuda {

// 16 bytes that name the GPU, whatever its number in a process.
std::string UuidOf(int device);

// Where the first element of a tensor lies.
struct PlaceInSegment {
  void* segment = nullptr;
  size_t segment_bytes = 0;
  size_t offset = 0;
};
// Nothing for memory that is not the caching allocator's, and while the calling
// thread captures.
std::optional<PlaceInSegment> PlaceOf(const Tensor& tensor);

// The segment's handle. It stays on the device until as many calls of Unshare.
std::string ShareSegment(void* segment, int device);
void UnshareSegment(void* segment, int device);
// Another process's, as the given GPU of this one sees it; closed when dropped.
std::shared_ptr<void> OpenSegment(const std::string& handle, int device);

// An event of a GPU that others can open, recorded on streams of that GPU. Each
// of these makes the event's GPU the thread's for as long as it runs: the
// driver is never asked for an event in the context of another GPU.
std::shared_ptr<void> MakeSharedEvent(int device);
std::string HandleOfEvent(void* event, int device);
void RecordSharedEvent(void* event, const Stream& stream);
std::shared_ptr<void> OpenSharedEvent(const std::string& handle, int device);

// A copy of another process's memory under way; what it reads and writes must
// stay until it has ended. Thread-compatible.
class Pull {
 public:
  virtual ~Pull() = default;
  // Whether it has ended; lets it begin when `ready` has. It is called again
  // and again until then. `give_up` lets it begin whatever `ready` says: the
  // process that was to make it end is gone.
  virtual bool Poll(bool give_up) = 0;
};

// A stream that copies in order. It never waits for an event of another
// process, which might end and leave it waiting: it waits for a word of this
// process's own memory, which Poll writes. Thread-safe.
class PullLane {
 public:
  virtual ~PullLane() = default;
  virtual const Stream& stream() const = 0;
  // To a tensor that was made on this stream and lies without gaps, as many
  // bytes as it has.
  virtual std::unique_ptr<Pull> Begin(const Tensor& target, const void* source,
                                      std::shared_ptr<void> ready) = 0;
};
std::shared_ptr<PullLane> MakePullLane(const Stream& stream);

}  // namespace baton::cuda

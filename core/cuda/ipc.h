// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "core/stream.h"
#include "core/tensor.h"

// Shares GPU memory and events with other processes of this machine (CUDA IPC).
// A handle is a string of bytes that has a meaning only in other processes.
// core/no_cuda has the same symbols. All throw Error for what the device
// reports.
namespace baton::cuda {

// Returns 16 bytes that identify the GPU, whatever its number in a process.
std::string UuidOf(int device);

// The position of a tensor's first element.
struct PlaceInSegment {
  void* segment = nullptr;
  size_t segment_bytes = 0;
  size_t offset = 0;
};
// Returns nullopt for memory that is not the caching allocator's, and while the
// calling thread captures.
std::optional<PlaceInSegment> PlaceOf(const Tensor& tensor);

// Returns the segment's handle. The segment stays on the device until
// UnshareSegment was called as often.
std::string ShareSegment(void* segment, int device);
void UnshareSegment(void* segment, int device);
// Opens another process's segment for the given GPU of this process; the last
// copy of the result closes it.
std::shared_ptr<void> OpenSegment(const std::string& handle, int device);

// An event of a GPU that other processes can open, recorded on streams of that
// GPU. Each of these functions makes the event's GPU the thread's while it
// runs: the driver is never asked for an event in the context of another GPU.
std::shared_ptr<void> MakeSharedEvent(int device);
std::string HandleOfEvent(void* event, int device);
void RecordSharedEvent(void* event, const Stream& stream);
std::shared_ptr<void> OpenSharedEvent(const std::string& handle, int device);

// Returns whether the work before the event's last record has ended. If the
// driver cannot be asked, logs a warning and returns true.
bool SharedEventHasEnded(void* event, int device);

// Begins to copy target.nbytes() bytes from another process's memory into the
// tensor, which has no gaps. That memory must stay until the query that this
// returns gives true; any thread may call it. Users of the tensor wait for the
// copy on the GPU, as for any other.
absl::AnyInvocable<bool()> CopyFromSegment(const Tensor& target,
                                           const void* source,
                                           const Stream& stream);

// Copies `source` into another process's memory, of which `target` is a view in
// the same order, on `stream` of the source's device. The copy engine does it,
// beside the kernels of other streams. May be recorded.
void CopyToSegment(const Tensor& target, const Tensor& source,
                   const Stream& stream);

}  // namespace baton::cuda

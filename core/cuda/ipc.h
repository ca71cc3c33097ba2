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

// Whether what was recorded of it has ended. True, with a warning, where the
// driver cannot be asked.
bool SharedEventHasEnded(void* event, int device);

// Begins to copy as many bytes as the tensor has, and lies without gaps, from
// another process's memory, which must stay until the query that it returns
// is answered with yes, on any thread. Users of the tensor wait for the copy on
// the GPU, as for any other.
absl::AnyInvocable<bool()> CopyFromSegment(const Tensor& target,
                                           const void* source,
                                           const Stream& stream);

// Copies `source` into another process's memory, which `target` is a view of
// and which lies in the same order, on `stream` of the source's device: by the
// copy engine, beside the kernels of other streams. May be recorded.
void CopyToSegment(const Tensor& target, const Tensor& source,
                   const Stream& stream);

}  // namespace baton::cuda

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/poller.h"

namespace baton::rpc {

// The operations of CUDA IPC on this process's GPUs; tests substitute another
// implementation. Failures of the device are returned as statuses. Thread-safe.
class IpcGpu {
 public:
  virtual ~IpcGpu() = default;
  virtual int count() const = 0;
  // The GPU on which tensors arrive; its tensors are also the first to be sent.
  virtual int own() const = 0;
  // The UUID of own(), which is the same in every process that sees this GPU.
  virtual absl::StatusOr<std::string> Uuid() = 0;

  // For the owner: where the elements of a tensor begin, or nothing if the
  // memory cannot be shared.
  struct Place {
    int gpu = 0;
    void* segment = nullptr;
    uint64_t segment_bytes = 0;
    uint64_t offset = 0;
  };
  virtual std::optional<Place> Find(const Tensor& tensor) = 0;
  // Returns the segment's handle, which is valid until Unshare.
  virtual absl::StatusOr<std::string> Share(const Place& place) = 0;
  virtual void Unshare(const Place& place) = 0;
  struct Event {
    std::shared_ptr<void> event;
    std::string handle;
  };
  virtual absl::StatusOr<Event> MakeEvent(int gpu) = 0;
  // The event ends when all writes to the tensor that were issued so far have
  // ended.
  virtual absl::Status Record(const Event& event, const Tensor& tensor) = 0;

  // For the receiver.
  virtual absl::StatusOr<std::shared_ptr<void>> OpenSegment(
      const std::string& handle) = 0;
  virtual absl::StatusOr<std::shared_ptr<void>> OpenEvent(
      const std::string& handle) = 0;
  virtual bool HasEnded(const std::shared_ptr<void>& event) = 0;
  // Returns a tensor of this GPU to copy into.
  virtual absl::StatusOr<Tensor> Make(const TensorSpec& spec) = 0;
  // Begins to copy the elements at `source` into `target` and returns a query
  // for the end of the copy. `target` may be used at once, like any tensor that
  // is being written.
  virtual absl::StatusOr<Poller::Query> Copy(const Tensor& target,
                                             const void* source) = 0;

  // For proofs; both wait for the copy.
  virtual absl::StatusOr<Tensor> Upload(const Tensor& host, int gpu) = 0;
  virtual absl::StatusOr<Tensor> Download(const Tensor& tensor) = 0;
};

// The GPUs of two processes between which tensors are copied.
enum class IpcReach { kOneGpu, kAllGpus };

// Returns the sum of the bytes of a CPU tensor, by which the receiver of a
// proof shows what it has read.
uint64_t SumOf(const Tensor& tensor);

// Returns the implementation for CUDA. Without a GPU its count() is 0.
std::shared_ptr<IpcGpu> MakeCudaGpu(Device own);

// Returns Unavailable unless the process sees its own GPU.
absl::Status CheckOwn(const IpcGpu& gpu);

// Returns FailedPrecondition unless this process sees the device.
absl::Status CheckDevice(Device device);

}  // namespace baton::rpc

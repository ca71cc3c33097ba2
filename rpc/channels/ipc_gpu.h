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

// What CUDA IPC asks of this process's GPUs; tests have another one. Failures
// of the device are statuses. Thread-safe.
class IpcGpu {
 public:
  virtual ~IpcGpu() = default;
  virtual int count() const = 0;
  // Where tensors come to, and the first GPU whose tensors are sent.
  virtual int own() const = 0;
  // Of own(): the same in every process that sees this GPU.
  virtual absl::StatusOr<std::string> Uuid() = 0;

  // The owner's part. Where the elements of a tensor begin; nothing for memory
  // that cannot be shared.
  struct Place {
    int gpu = 0;
    void* segment = nullptr;
    uint64_t segment_bytes = 0;
    uint64_t offset = 0;
  };
  virtual std::optional<Place> Find(const Tensor& tensor) = 0;
  // The segment's handle; it stays until Unshare.
  virtual absl::StatusOr<std::string> Share(const Place& place) = 0;
  virtual void Unshare(const Place& place) = 0;
  struct Event {
    std::shared_ptr<void> event;
    std::string handle;
  };
  virtual absl::StatusOr<Event> MakeEvent(int gpu) = 0;
  // The event ends when what has been given to write the tensor has.
  virtual absl::Status Record(const Event& event, const Tensor& tensor) = 0;

  // The receiver's.
  virtual absl::StatusOr<std::shared_ptr<void>> OpenSegment(
      const std::string& handle) = 0;
  virtual absl::StatusOr<std::shared_ptr<void>> OpenEvent(
      const std::string& handle) = 0;
  virtual bool HasEnded(const std::shared_ptr<void>& event) = 0;
  // A tensor of this GPU to copy into.
  virtual absl::StatusOr<Tensor> Make(const TensorSpec& spec) = 0;
  // Begins to copy the elements at `source` into it: whether that has ended. To
  // be used at once, like any that is being written.
  virtual absl::StatusOr<Poller::Query> Copy(const Tensor& target,
                                             const void* source) = 0;

  // For proofs: these wait.
  virtual absl::StatusOr<Tensor> Upload(const Tensor& host, int gpu) = 0;
  virtual absl::StatusOr<Tensor> Download(const Tensor& tensor) = 0;
};

// Between which GPUs of two processes tensors are copied.
enum class IpcReach { kOneGpu, kAllGpus };

// That of CUDA. Works where there is none: count() is 0.
std::shared_ptr<IpcGpu> MakeCudaGpu(Device own);

// Unavailable unless it sees its own GPU.
absl::Status CheckOwn(const IpcGpu& gpu);

// FailedPrecondition unless this process sees the device.
absl::Status CheckDevice(Device device);

}  // namespace baton::rpc

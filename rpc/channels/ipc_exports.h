// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {

namespace wire {
class CudaIpcControl_Passed;
}  // namespace wire

// What one peer may read of this process's GPUs: segments of the allocators,
// each passed once; events of each GPU, from a fixed set; and the tensors being
// sent, whose storages it keeps alive. The peer reads a tensor where it lies,
// and writers here wait until it has done so. Thread-safe.
class IpcExports {
 public:
  // Serves either only this process's own GPU or all of them.
  IpcExports(std::shared_ptr<IpcGpu> gpu, IpcReach reach)
      : gpu_(std::move(gpu)), reach_(reach) {}
  ~IpcExports();

  // What must be passed before a tensor can be sent; each is requested once.
  struct Need {
    IpcGpu::Place place;
    bool first = false;  // of its GPU
  };
  // Returns a ticket or nothing, and perhaps sets `need` for later tensors.
  std::optional<Ticket> Export(const Tensor& tensor, std::optional<Need>& need);
  // InvalidArgument for a lease that the peer does not hold.
  absl::Status GiveBack(uint64_t lease);

  // These may take long. PassFirst passes the first segment of a GPU, with a
  // proof in memory of its own; the other one passes a segment that was needed.
  absl::StatusOr<wire::CudaIpcControl_Passed> PassFirst(int gpu);
  absl::StatusOr<wire::CudaIpcControl_Passed> Pass(const IpcGpu::Place& place);
  // Handles the peer's answer to a segment, with the sum of what it read.
  // Returns true for the first segment that is open, or an error that says why
  // it is not.
  absl::StatusOr<bool> OnOpened(uint32_t segment, const std::string& failure,
                                uint64_t sum);

  // Returns segments in which nothing was sent for `idle`, except the first of
  // a GPU. Once the peer has closed them, they may be returned to the device.
  std::vector<uint32_t> TakeIdle(std::chrono::milliseconds idle);
  void OnClosed(uint32_t segment);

  // Ends all exports. What the peer may still read stays until `Lost` is
  // dropped.
  struct Lost;
  std::shared_ptr<Lost> Lose();

  SentTensors counts() const;
  // Why the channel or one of its segments did not open; else empty.
  std::string why_not() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kPassed, kOpen, kRefused, kClosing };
  struct Segment {
    uint32_t id = 0;
    State state = State::kPassed;
    IpcGpu::Place place;
    uint64_t leases = 0;  // held by the peer
    Clock::time_point used = {};
  };
  struct Gpu {
    State state = State::kPassed;
    uint32_t first = 0;  // its first segment
    uint64_t sum = 0;
    Tensor proof = {};
    std::vector<IpcGpu::Event> events = {};
    std::vector<uint32_t> free = {};
  };
  struct Lease {
    IpcGpu::Place place = {};
    uint32_t event = 0;
    uint64_t bytes = 0;
    std::shared_ptr<Storage> storage = nullptr;
    std::shared_ptr<OutsideRead> read = nullptr;
  };
  struct Taken {
    uint32_t segment;
    uint64_t lease;
    uint32_t slot;
    IpcGpu::Event event;
    std::shared_ptr<OutsideRead> read;
  };

  std::optional<Taken> TakeLocked(const Tensor& tensor,
                                  const IpcGpu::Place& place,
                                  std::optional<Need>& need)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Taken LeaseLocked(const Tensor& tensor, Segment& segment, Gpu& gpu)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> Ticketed(const Tensor& tensor,
                                       const IpcGpu::Place& place,
                                       const Taken& taken);
  absl::StatusOr<uint32_t> ShareLocked(const IpcGpu::Place& place,
                                       wire::CudaIpcControl_Passed& passed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<IpcGpu> gpu_;
  const IpcReach reach_;
  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t next_segment_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int, Gpu> gpus_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, Segment> segments_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
  std::string why_not_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

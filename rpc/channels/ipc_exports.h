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
// each passed once; events of each GPU, from a fixed set; and the tensors that
// are on their way, whose storages it holds. A tensor is not copied: the peer
// reads it where it is, and writers here wait until it has. Thread-safe.
class IpcExports {
 public:
  // Of one GPU, this process's own, or of all.
  IpcExports(std::shared_ptr<IpcGpu> gpu, IpcReach reach)
      : gpu_(std::move(gpu)), reach_(reach) {}
  ~IpcExports();

  // What must be passed before a tensor can be sent; each is asked for once.
  struct Need {
    IpcGpu::Place place;
    bool first = false;  // of its GPU
  };
  // A ticket, or nothing; then, perhaps, what is needed for the next time.
  std::optional<Ticket> Export(const Tensor& tensor, std::optional<Need>& need);
  // InvalidArgument for a lease that is not out.
  absl::Status GiveBack(uint64_t lease);

  // These take their time. The first of a GPU, with a proof in memory of its
  // own; a segment that was needed.
  absl::StatusOr<wire::CudaIpcControl_Passed> PassFirst(int gpu);
  absl::StatusOr<wire::CudaIpcControl_Passed> Pass(const IpcGpu::Place& place);
  // What the peer said of a segment, with the sum of what it read. True for the
  // first that is open; an error says why it is not.
  absl::StatusOr<bool> OnOpened(uint32_t segment, const std::string& failure,
                                uint64_t sum);

  // Segments in which nothing was sent for so long, which the peer is to close;
  // then they may go back to the device. Not the first of a GPU.
  std::vector<uint32_t> TakeIdle(std::chrono::milliseconds idle);
  void OnClosed(uint32_t segment);

  // Nothing more is exported. What the peer may still read stays until `Lost`
  // is dropped.
  struct Lost;
  std::shared_ptr<Lost> Lose();

  SentTensors counts() const;
  // Why it did not open, or one of its segments did not; else empty.
  std::string why_not() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kPassed, kOpen, kRefused, kClosing };
  struct Segment {
    uint32_t id = 0;
    State state = State::kPassed;
    IpcGpu::Place place;
    uint64_t leases = 0;  // that are out
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

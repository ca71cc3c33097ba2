// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/poller.h"

namespace baton::rpc {

namespace wire {
class CudaIpcControl_Passed;
class CudaIpcTicket;
}  // namespace wire

// What one peer may read of this process's GPUs: segments of the allocators,
// each passed once; events of each GPU, from a fixed set; and the tensors being
// sent, whose storages it keeps alive. The peer reads a tensor where it lies,
// and writers here wait until it has done so. Thread-safe.
class IpcExports {
 public:
  // Serves either only this process's own GPU or all of them. `wanted` is
  // called when a writer waits for the peer; the writer may hold locks.
  IpcExports(std::shared_ptr<IpcGpu> gpu, IpcReach reach,
             std::function<void()> wanted = nullptr)
      : gpu_(std::move(gpu)), reach_(reach), wanted_(std::move(wanted)) {}
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
  const std::function<void()> wanted_;
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

// What one peer has passed to this process, and the copies of its tensors that
// are under way. Of what the peer says it trusts only the handles, which the
// driver checks, and the sizes of segments, which nobody checks. Thread-safe.
class IpcImports : public std::enable_shared_from_this<IpcImports> {
 public:
  IpcImports(std::shared_ptr<IpcGpu> gpu, std::weak_ptr<Poller> poller,
             std::shared_ptr<ChannelPort> port)
      : gpu_(std::move(gpu)),
        poller_(std::move(poller)),
        port_(std::move(port)) {}

  // Opens a segment and the events that came with it, which may take long.
  // Returns the sum of the proof, if there is one.
  absl::StatusOr<uint64_t> Open(const wire::CudaIpcControl_Passed& passed);

  // No new tensors are imported from this segment.
  void Close(uint32_t segment);

  // Returns a tensor of this process's GPU, which may be used once the peer has
  // written it and the copy has begun. Its lease is released once it is copied:
  // soon if the peer has waited for one lately, else with a later message.
  // InvalidArgument for a ticket that makes no sense.
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const wire::CudaIpcTicket& ticket);

  // Called when the peer waits for a lease.
  void Hurry();

  // Ends all imports; tensors that the peer has not finished fail. What was
  // opened is closed with the result, whose destructor waits for the GPU.
  struct Segment {
    int gpu = 0;
    uint64_t bytes = 0;
    std::shared_ptr<void> base = nullptr;
  };
  using Segments = std::map<uint32_t, Segment>;
  Segments Forget();

  ReceivedTensors counts() const;

 private:
  using Events = std::vector<std::shared_ptr<void>>;
  // What must not be in use twice.
  struct Claim {
    uint64_t lease = 0;
    std::pair<int, uint32_t> event = {};  // with its GPU
  };
  struct Source {
    Segment segment;
    std::shared_ptr<void> ready;
    Claim claim;
  };

  absl::Status Add(const wire::CudaIpcControl_Passed& passed, Segment segment,
                   Events events);
  absl::StatusOr<Source> Check(const TensorSpec& spec,
                               const wire::CudaIpcTicket& ticket);
  absl::Status Copy(const Tensor& target, const void* from,
                    const Source& source);
  void CopyWhenReady(const Tensor& target, const void* from,
                     const Source& source, const Promise<void>& given);
  void Return(const Claim& claim);

  const std::shared_ptr<IpcGpu> gpu_;
  const std::weak_ptr<Poller> poller_;
  const std::shared_ptr<ChannelPort> port_;
  // Until the peer's GPU had written what was imported.
  const std::shared_ptr<AnswerTimes> ready_times_ =
      std::make_shared<AnswerTimes>();
  std::atomic<bool> lost_{false};
  std::atomic<std::chrono::steady_clock::time_point> hurries_until_{};
  mutable Mutex mutex_;
  Segments segments_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Events> events_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> leases_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int, uint32_t>> waited_for_ ABSL_GUARDED_BY(mutex_);
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
class CudaIpcTicket;
class CudaIpcControl_Passed;
}  // namespace wire

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
  // written it and the copy has begun. Its lease is released once it is copied.
  // InvalidArgument for a ticket that makes no sense.
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const wire::CudaIpcTicket& ticket);

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
  mutable Mutex mutex_;
  Segments segments_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Events> events_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> leases_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int, uint32_t>> waited_for_ ABSL_GUARDED_BY(mutex_);
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

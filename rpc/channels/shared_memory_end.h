// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/exported_blocks.h"
#include "rpc/channels/fd_socket.h"
#include "rpc/channels/imported_blocks.h"
#include "rpc/channels/message_ring.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/shared_budget.h"
#include "rpc/channels/shared_heartbeat.h"
#include "rpc/channels/shared_memory.h"

namespace baton::rpc {

namespace wire {
class SharedMemoryControl;
class SharedMemoryControl_Passed;
}  // namespace wire

// One end of shared memory between two workers (rpc/wire.proto has its
// messages). The two directions open independently: each sender passes segments
// and uses one once the receiver has mapped it. After a loss nothing is reused:
// the sender unmaps its segments, and the pages are freed with the receiver's
// last tensor.
class SharedMemoryEnd final
    : public Channel,
      public std::enable_shared_from_this<SharedMemoryEnd> {
 public:
  using Connect = std::function<absl::StatusOr<FdConnection>()>;
  // See SharedMemoryOptions.
  struct Budget {
    std::shared_ptr<SharedBudget> made, mapped;
    uint64_t bytes = 0;
    std::chrono::milliseconds idle{0};
    Pin pin = {};
  };
  // Slow work runs on `executor`, whose thread may block. `heartbeat` and
  // `wakeup` are this process's; null if it has no heartbeat, or wants no
  // rings.
  SharedMemoryEnd(Connect connect, const Budget& budget,
                  std::shared_ptr<ThreadPool> executor,
                  std::shared_ptr<SharedHeartbeat> heartbeat,
                  std::shared_ptr<FutexEvent> wakeup,
                  std::shared_ptr<ChannelPort> port);

  void Start() override;
  void OnControl(std::string payload) override;
  std::optional<Ticket> Export(const Tensor& tensor) override;
  Tensor Make(const TensorSpec& spec) override;
  std::optional<Ticket> ExportInPlace(Tensor& tensor) override;
  void Withdraw(uint64_t lease) override;
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const std::string& ticket) override;
  absl::Status OnReleased(uint64_t lease) override;
  Signs Beat() override;
  void OnLost() override;
  TensorChannelInfo info() const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Passed {
    std::shared_ptr<Segment> segment;
    uint64_t seed = 0;
  };

  void Post(Task task);
  void SendControl(const wire::SharedMemoryControl& control);

  // These run on the executor. A part of the budget ends with its segment.
  using Part = std::unique_ptr<SharedBudget::Part>;
  absl::Status Connected();
  void PassOrTell(size_t bytes, Part part);
  absl::Status Pass(size_t bytes, Part part);
  // Makes room for a tensor of this size if the budget allows.
  void GrowNow(uint64_t bytes);
  // Removes segments that have been idle for so long, once the peer has
  // unmapped them.
  void ReturnIdle(Clock::duration idle);
  // Passes the heartbeat, once; returns false if there is none.
  bool PassHeartbeat();
  absl::StatusOr<bool> PassRing();
  void OnControlMessage(const wire::SharedMemoryControl& control);
  absl::Status Map(const wire::SharedMemoryControl_Passed& passed);
  absl::Status Watch();
  absl::Status MapRing();
  // Hands over the ring once the peer has mapped it and has passed its wakeup.
  void UseRing();
  void OnMapped(uint32_t id, const std::string& failure);

  // Requests a segment for a tensor of this size, once the channel is open.
  void Grow(uint64_t bytes);
  // A segment that was requested was not passed, or not mapped.
  void NotGrown(uint32_t id, const std::string& why);

  const Connect connect_;
  const Budget budget_;
  const std::weak_ptr<ThreadPool> executor_;
  const std::shared_ptr<SharedHeartbeat> heartbeat_;
  const std::shared_ptr<FutexEvent> wakeup_;
  const std::shared_ptr<ChannelPort> port_;
  const std::shared_ptr<ImportedBlocks> imported_;
  const std::shared_ptr<ExportedBlocks> exported_ =
      std::make_shared<ExportedBlocks>();
  // Used by the executor only.
  std::optional<FdConnection> connection_;
  bool heartbeat_passed_ = false;
  bool ring_passed_ = false;
  bool ring_mapped_ = false;  // by the peer
  std::unique_ptr<RingWriter> ring_;
  std::shared_ptr<FutexWaker> peer_wakeup_;  // of the other process
  bool mapped_one_ = false;
  ExportedBlocks::Segments returning_;  // which the peer must unmap

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool passing_ ABSL_GUARDED_BY(mutex_) = false;  // the first segment
  uint32_t next_segment_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, Passed> passed_ ABSL_GUARDED_BY(mutex_);  // not mapped yet
  uint64_t budget_member_ ABSL_GUARDED_BY(mutex_) = 0;
  bool growing_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point grow_again_ ABSL_GUARDED_BY(mutex_){};
  std::string why_not_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HeartbeatWatch> watch_
      ABSL_GUARDED_BY(mutex_);                    // of the peer
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;  // by the peer
};

}  // namespace baton::rpc

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
#include "rpc/channels/ring_ends.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/shared_budget.h"
#include "rpc/channels/shared_heartbeat.h"
#include "rpc/channels/shared_memory.h"

namespace baton::rpc {

namespace wire {
class SharedMemoryControl;
class SharedMemoryControl_Passed;
}  // namespace wire

// One end of shared memory between two workers (rpc/wire.proto has what they
// say). The two directions open by themselves: each sender passes segments and
// uses one once the receiver has mapped it. After a loss nothing is reused: the
// sender unmaps, and the pages go with the receiver's last tensor.
class SharedMemoryEnd final
    : public Channel,
      public std::enable_shared_from_this<SharedMemoryEnd> {
 public:
  using Connect = std::function<absl::StatusOr<FdConnection>()>;
  // As SharedMemoryOptions has them.
  struct Budget {
    std::shared_ptr<SharedBudget> made, mapped;
    uint64_t bytes = 0;
    std::chrono::milliseconds idle{0};
    Pin pin = {};
  };
  // What takes long runs on `executor`, a thread that may be held up.
  // `heartbeat` and `wakeup` are this process's; null where it has none, or
  // wants no rings.
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

  // On the executor. A part of the budget ends with its segment.
  using Part = std::unique_ptr<SharedBudget::Part>;
  absl::Status Connected();
  void PassOrTell(size_t bytes, Part part);
  absl::Status Pass(size_t bytes, Part part);
  // Makes room for a tensor like this one, if the budget has it.
  void GrowNow(uint64_t bytes);
  // Segments that nobody has used for so long go, once the peer has unmapped
  // them.
  void ReturnIdle(Clock::duration idle);
  // Once; false where there is none to pass.
  bool PassHeart();
  absl::StatusOr<bool> PassRing();
  void OnControlMessage(const wire::SharedMemoryControl& control);
  absl::Status Map(const wire::SharedMemoryControl_Passed& passed);
  absl::Status Watch();
  absl::Status MapRing();
  // Hands over the ring once the peer has mapped it and the peer's wakeup has
  // come.
  void UseRing();
  void OnMapped(uint32_t id, const std::string& failure);

  // Has a segment made for tensors like this one, if there have been any.
  void Grow(uint64_t bytes);
  // A segment that was to be was not passed, or not mapped.
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
  // The executor's.
  std::optional<FdConnection> connection_;
  bool heartbeat_passed_ = false;
  bool ring_passed_ = false;
  bool ring_mapped_ = false;  // there
  std::unique_ptr<RingWriter> ring_;
  std::shared_ptr<FutexWaker> peer_wakeup_;  // of the other process
  bool mapped_one_ = false;
  ExportedBlocks::Segments returning_;  // that the peer is to unmap

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool passing_ ABSL_GUARDED_BY(mutex_) = false;  // its first segment
  uint32_t next_segment_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, Passed> passed_ ABSL_GUARDED_BY(mutex_);  // not mapped yet
  uint64_t budget_member_ ABSL_GUARDED_BY(mutex_) = 0;
  bool growing_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point grow_again_ ABSL_GUARDED_BY(mutex_){};
  std::string why_not_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HeartbeatWatch> watch_
      ABSL_GUARDED_BY(mutex_);                    // of the peer's
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;  // by the peer
};

}  // namespace baton::rpc

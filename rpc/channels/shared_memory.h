// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/fd_socket.h"
#include "rpc/channels/futex_event.h"
#include "rpc/channels/message_ring.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/shared_blocks.h"
#include "rpc/channels/shared_budget.h"

namespace baton::rpc {

// Pins memory until the last copy of the result is dropped; returns null if it
// cannot.
using Pin = std::function<std::shared_ptr<void>(void* data, size_t bytes)>;

struct SharedMemoryOptions {
  // The path of the socket that passes segments, in a directory that only this
  // user may enter.
  std::string socket_path = {};
  // The most bytes of segments that are made for tensors sent to peers, beside
  // the first 64 KB for each peer, and the most bytes of peers' segments that
  // are mapped. Further tensors use other ways. The limit holds for all workers
  // of this process with the same budgets (null: those of the process).
  size_t bytes = size_t{1} << 30;
  std::shared_ptr<SharedBudget> made = nullptr;
  std::shared_ptr<SharedBudget> mapped = nullptr;
  // Memory that was not used for so long is returned on connections with beats;
  // when the budget is short, after a second.
  std::chrono::milliseconds idle{30'000};
  // Pins each mapped segment of a peer beyond its first 64 KB while it is
  // mapped, so that GPUs of this process copy from it at the full rate. Empty
  // for no pinning.
  Pin pin = {};
  // The futex event of this process if small messages use rings, else null.
  std::shared_ptr<FutexEvent> wakeup = nullptr;
};

// Makes the channel of shared memory, for CPU tensors between processes of one
// machine and user. The sender copies the elements once into a block of a
// segment that it shares with this one peer. The receiver's tensor is that
// block, which it may read and write until it releases the lease. Segments are
// made on demand: a tensor without room causes one for later tensors. If there
// can be no shared memory, Offer of the result returns the reason.
std::shared_ptr<ChannelKind> MakeSharedMemory(
    const SharedMemoryOptions& options);

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
  std::shared_ptr<FutexEvent> peer_wakeup_;  // of the other process
  bool mapped_one_ = false;
  ExportedBlocks::Segments returning_;  // which the peer must unmap

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool passing_ ABSL_GUARDED_BY(mutex_) = false;  // the first segment
  uint32_t next_segment_ ABSL_GUARDED_BY(mutex_) = 1;
  ExportedBlocks::Segments passed_ ABSL_GUARDED_BY(mutex_);  // not mapped yet
  uint64_t budget_member_ ABSL_GUARDED_BY(mutex_) = 0;
  bool growing_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point grow_again_ ABSL_GUARDED_BY(mutex_){};
  std::string why_not_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HeartbeatWatch> watch_
      ABSL_GUARDED_BY(mutex_);                    // of the peer
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;  // by the peer
};

}  // namespace baton::rpc

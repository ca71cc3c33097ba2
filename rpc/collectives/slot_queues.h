// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/dtype.h"
#include "core/mutex.h"
#include "core/ops/kernel_args.h"
#include "core/spinning.h"
#include "rpc/channels/futex_event.h"
#include "rpc/collectives/slot_queue.h"

namespace baton::rpc {

// One step of a collective at one member, of at most a slot: takes a chunk
// (`from`), combines it with its own elements, keeps the result and hands it on
// (`to`), each where it is asked for.
struct SlotStep {
  static constexpr int kNobody = -1;
  int from = kNobody, to = kNobody;
  const std::byte* own = nullptr;  // null: what comes is taken as it is
  std::byte* keep = nullptr;       // null: not kept. May be `own`
  int64_t count = 0;               // elements
};

// All queues of one member of a group, and how it waits for them. Moves are one
// thread's; the rest is thread-safe.
class SlotQueues {
 public:
  using Clock = std::chrono::steady_clock;
  struct Ends {
    std::unique_ptr<SlotReceiver> in;
    std::unique_ptr<SlotSender> out;
  };
  // Of the members by rank, this one's own empty. `wakeup` is this member's.
  SlotQueues(std::vector<Ends> ends, SlotQueueSize size,
             std::shared_ptr<FutexEvent> wakeup);

  SlotQueueSize size() const { return size_; }

  // What the steps of one collective have in common.
  struct Terms {
    uint64_t tag = 0;
    DType dtype = DType::kF32;
    BinaryOp op = BinaryOp::kAdd;
    Clock::time_point deadline;
  };
  // `scale`: of what is combined. Errors as CollectiveBackend::Run.
  absl::Status Move(const Terms& terms, const SlotStep& step, double scale = 1);

  void Abort(const absl::Status& why);
  void Leave(int rank, const absl::Status& why);

 private:
  absl::StatusOr<Chunk> AwaitChunk(const Terms& terms, const SlotStep& step);
  absl::StatusOr<std::byte*> AwaitSlot(const Terms& terms, int to);
  // Until `ready` says so, or fails. `rank` is whom it waits for.
  absl::Status AwaitThat(int rank, Clock::time_point deadline,
                         absl::FunctionRef<absl::StatusOr<bool>()> ready);
  // Why it is of no use to wait for that member.
  absl::Status CheckWait(int rank) const;

  const std::vector<Ends> ends_;
  const SlotQueueSize size_;
  const std::shared_ptr<FutexEvent> wakeup_;
  Spinning spinning_;

  std::atomic<bool> troubled_{false};  // there is something below
  mutable Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> left_ ABSL_GUARDED_BY(mutex_);  // by rank
};

}  // namespace baton::rpc

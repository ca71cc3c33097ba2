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

// One step of a collective at one member, of at most a slot's bytes: it
// receives a chunk from rank `from`, combines it with this member's elements
// `own`, stores the result in `keep` and sends it to rank `to`. Each of these
// is optional.
struct SlotStep {
  static constexpr int kNobody = -1;
  int from = kNobody, to = kNobody;
  const std::byte* own = nullptr;  // null: the chunk is taken as it is
  std::byte* keep = nullptr;       // null: not stored; may be `own`
  int64_t count = 0;               // elements
};

// All queues of one member of a group; waits for their chunks and slots. Move
// is confined to one thread; the rest is thread-safe.
class SlotQueues {
 public:
  using Clock = std::chrono::steady_clock;
  struct Ends {
    std::unique_ptr<SlotReceiver> in;
    std::unique_ptr<SlotSender> out;
  };
  // `ends` are the queue ends for each member, by rank; this member's own are
  // null. `wakeup` wakes this member.
  SlotQueues(std::vector<Ends> ends, SlotQueueSize size,
             std::shared_ptr<FutexEvent> wakeup);

  SlotQueueSize size() const { return size_; }

  // The values that all steps of one collective share.
  struct Terms {
    uint64_t tag = 0;
    DType dtype = DType::kF32;
    BinaryOp op = BinaryOp::kAdd;
    Clock::time_point deadline;
  };
  // Carries out one step. Combined elements are multiplied by `scale`. Errors
  // are those of CollectiveBackend::Run.
  absl::Status Move(const Terms& terms, const SlotStep& step, double scale = 1);

  void Abort(const absl::Status& why);
  void Leave(int rank, const absl::Status& why);

 private:
  absl::StatusOr<Chunk> AwaitChunk(const Terms& terms, const SlotStep& step);
  absl::StatusOr<std::byte*> AwaitSlot(const Terms& terms, int to);
  // Waits until `ready` returns true or an error. `rank` is the member that it
  // waits for.
  absl::Status AwaitThat(int rank, Clock::time_point deadline,
                         absl::FunctionRef<absl::StatusOr<bool>()> ready);
  // Returns why waiting for that member is useless; OK if it is not.
  absl::Status CheckWait(int rank) const;

  const std::vector<Ends> ends_;
  const SlotQueueSize size_;
  const std::shared_ptr<FutexEvent> wakeup_;
  Spinning spinning_;

  std::atomic<bool> troubled_{false};  // aborted_ or left_ has an error
  mutable Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> left_ ABSL_GUARDED_BY(mutex_);  // by rank
};

}  // namespace baton::rpc

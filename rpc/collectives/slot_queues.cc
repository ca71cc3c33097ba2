// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/slot_queues.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cpu/combine.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

// Sleeps are bounded, because a faulty peer may write a wrong value to the
// wakeup's word and so suppress a wake-up.
constexpr std::chrono::milliseconds kLongestSleep{100};

}  // namespace

SlotQueues::SlotQueues(std::vector<Ends> ends, SlotQueueSize size,
                       std::shared_ptr<FutexEvent> wakeup)
    : ends_(std::move(ends)),
      size_(size),
      wakeup_(std::move(wakeup)),
      left_(ends_.size()) {}

absl::Status SlotQueues::CheckWait(int rank) const {
  if (!troubled_.load()) return absl::OkStatus();
  MutexLock lock(mutex_);
  return aborted_.ok() ? left_[static_cast<size_t>(rank)] : aborted_;
}

void SlotQueues::Abort(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    if (aborted_.ok()) aborted_ = why;
  }
  troubled_ = true;
  wakeup_->WakeAll();
}

void SlotQueues::Leave(int rank, const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    left_[static_cast<size_t>(rank)] = why;
  }
  troubled_ = true;
  wakeup_->WakeAll();
}

absl::Status SlotQueues::AwaitThat(
    int rank, Clock::time_point deadline,
    absl::FunctionRef<absl::StatusOr<bool>()> ready) {
  spinning_.Restart();
  bool looks_on = true;
  for (;;) {
    ASSIGN_OR_RETURN(bool done, ready());
    if (done) {
      spinning_.Came();
      return absl::OkStatus();
    }
    if (looks_on && (looks_on = spinning_.Wait()) && !troubled_.load())
      continue;
    wakeup_->FallAsleep();
    const uint32_t seen = wakeup_->value();
    // The queue is checked after the trouble, so that chunks sent before a
    // member left are still received.
    const absl::Status trouble = CheckWait(rank);
    ASSIGN_OR_RETURN(done, ready());
    if (!done && !trouble.ok()) return trouble;
    if (!done && FutexEvent::Asleep(seen)) {
      const auto left = deadline - Clock::now();
      if (left.count() <= 0)
        return absl::DeadlineExceededError(
            absl::StrCat("nothing from rank ", rank, " in time"));
      wakeup_->Sleep(seen,
                     std::min<std::chrono::nanoseconds>(left, kLongestSleep));
    }
    wakeup_->WakeUp();
  }
}

absl::StatusOr<Chunk> SlotQueues::AwaitChunk(const Terms& terms,
                                             const SlotStep& step) {
  Chunk chunk;
  SlotReceiver& queue = *ends_[static_cast<size_t>(step.from)].in;
  RETURN_IF_ERROR(
      AwaitThat(step.from, terms.deadline, [&]() -> absl::StatusOr<bool> {
        ASSIGN_OR_RETURN(chunk, queue.Front());
        return chunk.data != nullptr;
      }));
  const auto bytes = static_cast<uint64_t>(step.count) * SizeOf(terms.dtype);
  if (chunk.tag != terms.tag || chunk.bytes != bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", step.from, " does something else"));
  }
  return chunk;
}

absl::StatusOr<std::byte*> SlotQueues::AwaitSlot(const Terms& terms, int to) {
  std::byte* slot = nullptr;
  SlotSender& queue = *ends_[static_cast<size_t>(to)].out;
  RETURN_IF_ERROR(AwaitThat(to, terms.deadline, [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(slot, queue.Slot());
    return slot != nullptr;
  }));
  return slot;
}

absl::Status SlotQueues::Move(const Terms& terms, const SlotStep& step,
                              double scale) {
  const size_t bytes = static_cast<size_t>(step.count) * SizeOf(terms.dtype);
  BATON_CHECK(bytes <= size_.slot_bytes);
  if (bytes == 0) return absl::OkStatus();  // the other ends skip it too
  Chunk chunk;
  std::byte* slot = nullptr;
  if (step.from != SlotStep::kNobody) {
    ASSIGN_OR_RETURN(chunk, AwaitChunk(terms, step));
  }
  if (step.to != SlotStep::kNobody) {
    ASSIGN_OR_RETURN(slot, AwaitSlot(terms, step.to));
  }

  if (chunk.data != nullptr && step.own != nullptr) {
    cpu::Combine(terms.op, terms.dtype, step.count, step.own, chunk.data, scale,
                 slot != nullptr ? slot : step.keep,
                 slot != nullptr ? step.keep : nullptr);
  } else {
    const std::byte* source = chunk.data != nullptr ? chunk.data : step.own;
    if (slot != nullptr) std::memcpy(slot, source, bytes);
    if (step.keep != nullptr && step.keep != source)
      std::memcpy(step.keep, source, bytes);
  }
  if (chunk.data != nullptr) ends_[static_cast<size_t>(step.from)].in->Pop();
  if (slot != nullptr)
    ends_[static_cast<size_t>(step.to)].out->Push(terms.tag, bytes);
  return absl::OkStatus();
}

}  // namespace baton::rpc

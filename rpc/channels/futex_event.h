// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// A futex that lets one process wake another: one word on which the owner's
// threads sleep, and which other processes map and write. The word is odd while
// all threads of the owner may be asleep, so that a waker must wake one, and
// even while one of them is awake and polls. Every change increments the word,
// so that a thread about to sleep notices that something has happened.
namespace baton::rpc {

// Wakes the threads of the process that owns the futex. Thread-safe.
class FutexWaker {
 public:
  // InvalidArgument for a descriptor that is not of a FutexEvent.
  static absl::StatusOr<std::unique_ptr<FutexWaker>> Open(Fd fd);

  // Wakes one thread of the owner unless one is awake. That thread sees
  // everything that was written before this call with sequential consistency.
  void Wake();

 protected:
  using Word = std::atomic<uint32_t>;
  explicit FutexWaker(Segment memory) : memory_(std::move(memory)) {}
  Word& word() const;

  Segment memory_;
};

// The futex of this process, on which its threads sleep. Other processes may
// write the word at any time, so a thread may wake spuriously, or stay asleep
// when it should not (WakeAll recovers from that). Thread-safe.
class FutexEvent : public FutexWaker {
 public:
  static absl::StatusOr<std::shared_ptr<FutexEvent>> Make();
  // The descriptor to pass to processes that shall call FutexWaker::Wake.
  const Fd& fd() const { return memory_.fd(); }

  uint32_t value() const { return word().load(std::memory_order_seq_cst); }
  static bool Asleep(uint32_t value) { return value % 2 == 1; }
  // Marks the owner as asleep: from now on others must call Wake. The caller
  // must then check once more for what they did before.
  void FallAsleep();
  void WakeUp();
  // Sleeps until somebody wakes it, if the word still is `seen`. May return
  // spuriously.
  void Sleep(uint32_t seen);
  // The same, for `limit` at most.
  void Sleep(uint32_t seen, std::chrono::nanoseconds limit);
  // Wakes all threads, whatever the value of the word.
  void WakeAll();

 private:
  explicit FutexEvent(Segment memory) : FutexWaker(std::move(memory)) {}
};

}  // namespace baton::rpc

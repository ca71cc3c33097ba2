// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// A futex by which other processes wake a process: one word on which the
// threads of the process that made it, its owner, sleep, and which other
// processes map and write. The word is odd while all threads of the owner may
// be asleep, so that a waker must wake one, and even while one of them is awake
// and polls. Every change increments the word, so that a thread about to sleep
// notices that something has happened. Other processes may write the word at
// any time, so a thread may wake spuriously, or stay asleep when it should not
// (WakeAll recovers from that).
namespace baton::rpc {

// Thread-safe.
class FutexEvent {
 public:
  // Makes the owner's.
  static absl::StatusOr<std::shared_ptr<FutexEvent>> Make();
  // Maps another process's, for Wake alone. InvalidArgument for a descriptor
  // that is not of a FutexEvent.
  static absl::StatusOr<std::shared_ptr<FutexEvent>> Open(Fd fd);
  // The owner's descriptor, to be passed to processes that shall call Wake.
  const Fd& fd() const { return memory_.fd(); }

  // Wakes one thread of the owner unless one is awake. That thread sees
  // everything that was written before this call with sequential consistency.
  void Wake();

  uint32_t value() const { return word_.load(std::memory_order_seq_cst); }
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
  explicit FutexEvent(Segment memory);

  const Segment memory_;
  std::atomic<uint32_t>& word_;  // in the memory
};

}  // namespace baton::rpc

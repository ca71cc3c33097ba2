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

// Wakes another process: one word that its threads sleep on, and that others
// map and write. It is odd while somebody shall be woken and even while
// somebody is awake, who looks by himself; each change raises it, so that who
// is about to sleep sees that something has happened.
namespace baton::rpc {

// The wakeup of another process. Thread-safe.
class FutexWaker {
 public:
  // InvalidArgument for what no FutexEvent gives.
  static absl::StatusOr<std::unique_ptr<FutexWaker>> Open(Fd fd);

  // Wakes one thread there unless one is awake. What was written before, with
  // sequential consistency, that thread sees.
  void Wake();

 protected:
  using Word = std::atomic<uint32_t>;
  explicit FutexWaker(Segment memory) : memory_(std::move(memory)) {}
  Word& word() const;

  Segment memory_;
};

// That of this process. Others may write the word at any time: whoever sleeps
// may wake for nothing, and be left asleep (see WakeAll). Thread-safe.
class FutexEvent : public FutexWaker {
 public:
  static absl::StatusOr<std::shared_ptr<FutexEvent>> Make();
  // To be handed to who shall ring.
  const Fd& fd() const { return memory_.fd(); }

  uint32_t value() const { return word().load(std::memory_order_seq_cst); }
  static bool Asleep(uint32_t value) { return value % 2 == 1; }
  // From now on others have to ring; look once more for what they did before.
  void FallAsleep();
  void WakeUp();
  // Until somebody rings, if the word still is `seen`; for nothing now and
  // then.
  void Sleep(uint32_t seen);
  // The same, and for nothing once `limit` has passed.
  void Sleep(uint32_t seen, std::chrono::nanoseconds limit);
  // Wakes all, whatever the word is.
  void WakeAll();

 private:
  explicit FutexEvent(Segment memory) : FutexWaker(std::move(memory)) {}
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/futex_event.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <new>
#include <utility>

#include "core/status.h"

namespace baton::rpc {
namespace {

using Word = std::atomic<uint32_t>;

constexpr size_t kEventBytes = 4096;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(uint32_t));

// Not FUTEX_PRIVATE_FLAG: the two ends are two processes.
void FutexWake(Word& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
}

}  // namespace

FutexEvent::FutexEvent(Segment memory)
    : memory_(std::move(memory)),
      word_(*std::launder(reinterpret_cast<Word*>(memory_.data()))) {}

absl::StatusOr<std::shared_ptr<FutexEvent>> FutexEvent::Make() {
  ASSIGN_OR_RETURN(Segment memory, Segment::Create(kEventBytes));
  new (memory.data()) Word(0);
  return std::shared_ptr<FutexEvent>(new FutexEvent(std::move(memory)));
}

absl::StatusOr<std::shared_ptr<FutexEvent>> FutexEvent::Open(Fd fd) {
  ASSIGN_OR_RETURN(Segment memory, Segment::Open(std::move(fd), kEventBytes));
  return std::shared_ptr<FutexEvent>(new FutexEvent(std::move(memory)));
}

void FutexEvent::Wake() {
  uint32_t value = word_.load(std::memory_order_seq_cst);
  if (value % 2 == 0) return;
  // If this fails, another thread has already woken it.
  if (word_.compare_exchange_strong(value, value + 1)) FutexWake(word_, 1);
}

void FutexEvent::FallAsleep() {
  uint32_t value = word_.load(std::memory_order_seq_cst);
  // WakeAll may come in between, which leaves the word even.
  while (value % 2 == 0 && !word_.compare_exchange_weak(value, value + 1)) {
  }
}

void FutexEvent::WakeUp() {
  uint32_t value = word_.load(std::memory_order_seq_cst);
  if (value % 2 == 1) word_.compare_exchange_strong(value, value + 1);
}

void FutexEvent::Sleep(uint32_t seen) {
  syscall(SYS_futex, &word_, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void FutexEvent::Sleep(uint32_t seen, std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) return;
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time{limit.count() / kSecond, limit.count() % kSecond};
  syscall(SYS_futex, &word_, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void FutexEvent::WakeAll() {
  word_.fetch_add(2);
  FutexWake(word_, INT_MAX);
}

}  // namespace baton::rpc

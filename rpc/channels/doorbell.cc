// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/doorbell.h"

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

constexpr size_t kDoorbellBytes = 4096;
static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Not FUTEX_PRIVATE_FLAG: the two sides are two processes.
void Wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bell>> Bell::Open(Fd fd) {
  ASSIGN_OR_RETURN(Segment memory,
                   Segment::Open(std::move(fd), kDoorbellBytes));
  return std::unique_ptr<Bell>(new Bell(std::move(memory)));
}

Bell::Word& Bell::word() const {
  return *std::launder(reinterpret_cast<Word*>(memory_.data()));
}

void Bell::Ring() {
  uint32_t value = word().load(std::memory_order_seq_cst);
  if (value % 2 == 0) return;
  // Who fails here has been overtaken by somebody who woke it.
  if (word().compare_exchange_strong(value, value + 1)) Wake(word(), 1);
}

absl::StatusOr<std::shared_ptr<Doorbell>> Doorbell::Make() {
  ASSIGN_OR_RETURN(Segment memory, Segment::Create(kDoorbellBytes));
  new (memory.data()) Word(0);
  return std::shared_ptr<Doorbell>(new Doorbell(std::move(memory)));
}

void Doorbell::FallAsleep() {
  uint32_t value = word().load(std::memory_order_seq_cst);
  if (value % 2 == 0) word().compare_exchange_strong(value, value + 1);
}

void Doorbell::WakeUp() {
  uint32_t value = word().load(std::memory_order_seq_cst);
  if (value % 2 == 1) word().compare_exchange_strong(value, value + 1);
}

void Doorbell::Sleep(uint32_t seen) {
  syscall(SYS_futex, &word(), FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void Doorbell::Sleep(uint32_t seen, std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) return;
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time{limit.count() / kSecond, limit.count() % kSecond};
  syscall(SYS_futex, &word(), FUTEX_WAIT, seen, &time, nullptr, 0);
}

void Doorbell::Alarm() {
  word().fetch_add(2);
  Wake(word(), INT_MAX);
}

}  // namespace baton::rpc

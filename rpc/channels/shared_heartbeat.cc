// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_heartbeat.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <utility>

namespace baton::rpc {
namespace {

constexpr size_t kHeartbeatBytes = 4096;
// Nobody can make a read of it fail, or make a new writable mapping.
constexpr int kHeartbeatSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

using Count = std::atomic<uint64_t>;
static_assert(Count::is_always_lock_free && sizeof(Count) == sizeof(uint64_t));

absl::Status NotHere() {
  return absl::UnavailableError("this system has no memory that one may write");
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedHeartbeat>> SharedHeartbeat::Make() {
  Fd fd(memfd_create("baton-heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || fallocate(fd.get(), 0, 0, kHeartbeatBytes) != 0)
    return NotHere();
  void* page = mmap(nullptr, kHeartbeatBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return NotHere();
  std::shared_ptr<SharedHeartbeat> heartbeat(
      new SharedHeartbeat(std::move(fd), page));
  if (fcntl(heartbeat->fd().get(), F_ADD_SEALS, kHeartbeatSeals) != 0)
    return NotHere();
  return heartbeat;
}

SharedHeartbeat::~SharedHeartbeat() { munmap(page_, kHeartbeatBytes); }

void SharedHeartbeat::Beat() {
  static_cast<Count*>(page_)->fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<HeartbeatWatch>> HeartbeatWatch::Open(
    const Fd& fd) {
  struct stat info;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kHeartbeatSeals) != kHeartbeatSeals ||
      fstat(fd.get(), &info) != 0 || info.st_size != kHeartbeatBytes) {
    return absl::InvalidArgumentError("a descriptor that is no heartbeat");
  }
  const void* page =
      mmap(nullptr, kHeartbeatBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) {
    return absl::ResourceExhaustedError("a heartbeat cannot be mapped");
  }
  return std::unique_ptr<HeartbeatWatch>(new HeartbeatWatch(page));
}

HeartbeatWatch::HeartbeatWatch(const void* page)
    : page_(page),
      seen_(static_cast<const Count*>(page)->load(std::memory_order_relaxed)) {}

HeartbeatWatch::~HeartbeatWatch() {
  munmap(const_cast<void*>(page_), kHeartbeatBytes);
}

bool HeartbeatWatch::HasBeaten() {
  const uint64_t now =
      static_cast<const Count*>(page_)->load(std::memory_order_relaxed);
  return std::exchange(seen_, now) != now;
}

}  // namespace baton::rpc

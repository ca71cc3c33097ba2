// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/heart.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <utility>

namespace baton::rpc {
namespace {

constexpr size_t kPageBytes = 4096;
// Nobody can make a read of it fail, nor map it to write from now on.
constexpr int kSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

using Count = std::atomic<uint64_t>;
static_assert(Count::is_always_lock_free && sizeof(Count) == sizeof(uint64_t));

absl::Status NotHere() {
  return absl::UnavailableError("this system has no memory that one may write");
}

}  // namespace

absl::StatusOr<std::shared_ptr<Heart>> Heart::Make() {
  Fd fd(memfd_create("baton-heart", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || fallocate(fd.get(), 0, 0, kPageBytes) != 0)
    return NotHere();
  void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
  if (page == MAP_FAILED) return NotHere();
  std::shared_ptr<Heart> heart(new Heart(std::move(fd), page));
  if (fcntl(heart->fd().get(), F_ADD_SEALS, kSeals) != 0) return NotHere();
  return heart;
}

Heart::~Heart() { munmap(page_, kPageBytes); }

void Heart::Beat() {
  static_cast<Count*>(page_)->fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<HeartWatch>> HeartWatch::Open(const Fd& fd) {
  struct stat info;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &info) != 0 ||
      info.st_size != kPageBytes) {
    return absl::InvalidArgumentError("a descriptor that is no heart");
  }
  const void* page =
      mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) {
    return absl::ResourceExhaustedError("a heart cannot be mapped");
  }
  return std::unique_ptr<HeartWatch>(new HeartWatch(page));
}

HeartWatch::HeartWatch(const void* page)
    : page_(page),
      seen_(static_cast<const Count*>(page)->load(std::memory_order_relaxed)) {}

HeartWatch::~HeartWatch() { munmap(const_cast<void*>(page_), kPageBytes); }

bool HeartWatch::HasBeaten() {
  const uint64_t now =
      static_cast<const Count*>(page_)->load(std::memory_order_relaxed);
  return std::exchange(seen_, now) != now;
}

}  // namespace baton::rpc

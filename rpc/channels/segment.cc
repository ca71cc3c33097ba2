// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status NoMemory(const char* what, size_t bytes, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " of ", bytes, " shared bytes: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.empty()) {
    return absl::UnavailableError("this machine has no boot id");
  }
  return id;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<uint64_t> FileOf(const Fd& fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) {
    return absl::UnavailableError(
        absl::StrCat("a shared file: ", std::strerror(errno)));
  }
  return info.st_ino;
}

absl::StatusOr<Fd> OpenFdOf(int64_t process, int descriptor, uint64_t file) {
  const std::string path = absl::StrCat("/proc/", process, "/fd/", descriptor);
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return absl::UnavailableError(absl::StrCat("a file of process ", process,
                                               ": ", std::strerror(errno)));
  }
  ASSIGN_OR_RETURN(const uint64_t found, FileOf(fd));
  if (found != file)
    return absl::UnavailableError("the workers see different processes");
  return fd;
}

absl::StatusOr<Segment> Segment::Create(size_t bytes) {
  Fd fd(memfd_create("baton", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return NoMemory("memfd_create", bytes, errno);
  // A page that cannot be allocated on its first write kills the process.
  if (fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    return NoMemory("fallocate", bytes, errno);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return NoMemory("sealing", bytes, errno);
  }
  return Map(std::move(fd), bytes);
}

absl::StatusOr<Segment> Segment::Open(Fd fd, size_t bytes) {
  struct stat info;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &info) != 0) {
    return absl::InvalidArgumentError("a segment that is not sealed");
  }
  if (info.st_size < 0 || static_cast<size_t>(info.st_size) != bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a segment of ", info.st_size, " bytes that was to have ", bytes));
  }
  ASSIGN_OR_RETURN(Segment segment, Map(std::move(fd), bytes));
  segment.CloseFd();
  return segment;
}

absl::StatusOr<Segment> Segment::Map(Fd fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) return NoMemory("mmap", bytes, errno);
  // A forked child's mapping would keep the pages for good.
  madvise(data, bytes, MADV_DONTFORK);
  return Segment(std::move(fd), static_cast<std::byte*>(data), bytes);
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

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

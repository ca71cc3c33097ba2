// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace baton::rpc {

// Returns an id of this machine since its last boot. Only processes that have
// the same one can share memory.
absl::StatusOr<std::string> BootId();

// A file descriptor that is closed with this object. Thread-compatible.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Leaves it to the caller to close the descriptor.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Returns the id of the descriptor's file, which is unique on this machine.
absl::StatusOr<uint64_t> FileOf(const Fd& fd);
// Opens a descriptor of another process of this machine and user, or of this
// one, by its number there. Unavailable if it cannot be reached, or belongs to
// another file and so to another process than the intended one.
absl::StatusOr<Fd> OpenFdOf(int64_t process, int descriptor, uint64_t file);

// Memory that two processes map and write. It has no name: only a process that
// was passed its descriptor can map it, and it ends with its last mapping,
// however the processes end. Its size is sealed, so that neither process can
// make the other one's accesses fail. Thread-compatible.
class Segment {
 public:
  // Allocates all its pages. ResourceExhausted if there is no memory for them.
  static absl::StatusOr<Segment> Create(size_t bytes);
  // Maps what another process created. InvalidArgument if it is not sealed or
  // not of that size.
  static absl::StatusOr<Segment> Open(Fd fd, size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // The descriptor to be passed on; the mapping does not need it.
  const Fd& fd() const { return fd_; }
  void CloseFd() { fd_ = Fd(); }

 private:
  Segment(Fd fd, std::byte* data, size_t bytes)
      : fd_(std::move(fd)), data_(data), bytes_(bytes) {}
  static absl::StatusOr<Segment> Map(Fd fd, size_t bytes);

  Fd fd_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// A heartbeat that needs no message: a counter in shared memory, which one
// process increments and other processes of its machine read. Only the process
// that made it can write it.

// The writing end. Thread-safe.
class SharedHeartbeat {
 public:
  // Returns Unavailable if the system cannot protect it from other writers.
  static absl::StatusOr<std::shared_ptr<SharedHeartbeat>> Make();
  ~SharedHeartbeat();
  SharedHeartbeat(const SharedHeartbeat&) = delete;
  SharedHeartbeat& operator=(const SharedHeartbeat&) = delete;

  void Beat();
  // The descriptor to pass to the processes that watch it.
  const Fd& fd() const { return fd_; }

 private:
  SharedHeartbeat(Fd fd, void* page) : fd_(std::move(fd)), page_(page) {}

  const Fd fd_;
  void* const page_;
};

// The reading end. Thread-compatible.
class HeartbeatWatch {
 public:
  // Returns InvalidArgument for a descriptor that is not a SharedHeartbeat's.
  static absl::StatusOr<std::unique_ptr<HeartbeatWatch>> Open(const Fd& fd);
  ~HeartbeatWatch();
  HeartbeatWatch(const HeartbeatWatch&) = delete;
  HeartbeatWatch& operator=(const HeartbeatWatch&) = delete;

  // Returns true if it has beaten since the last call, or since Open.
  bool HasBeaten();

 private:
  explicit HeartbeatWatch(const void* page);

  const void* const page_;
  uint64_t seen_;
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// A heartbeat that needs no message: a counter in shared memory, which one
// process increments and other processes of its machine read. Only the process
// that made it can write it.
namespace baton::rpc {

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

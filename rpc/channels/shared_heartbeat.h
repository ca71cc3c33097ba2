// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// A sign of life that costs its watchers no message: a count in memory that one
// process raises and others of its machine see. Only who made it can write it.
namespace baton::rpc {

// The end that beats. Thread-safe.
class SharedHeartbeat {
 public:
  // Unavailable where the system cannot protect it from others.
  static absl::StatusOr<std::shared_ptr<SharedHeartbeat>> Make();
  ~SharedHeartbeat();
  SharedHeartbeat(const SharedHeartbeat&) = delete;
  SharedHeartbeat& operator=(const SharedHeartbeat&) = delete;

  void Beat();
  // To be handed to who shall watch it.
  const Fd& fd() const { return fd_; }

 private:
  SharedHeartbeat(Fd fd, void* page) : fd_(std::move(fd)), page_(page) {}

  const Fd fd_;
  void* const page_;
};

// The end that watches. Thread-compatible.
class HeartbeatWatch {
 public:
  // InvalidArgument for what no SharedHeartbeat gives.
  static absl::StatusOr<std::unique_ptr<HeartbeatWatch>> Open(const Fd& fd);
  ~HeartbeatWatch();
  HeartbeatWatch(const HeartbeatWatch&) = delete;
  HeartbeatWatch& operator=(const HeartbeatWatch&) = delete;

  // It has beaten since the last time that this was asked, or since Open.
  bool HasBeaten();

 private:
  explicit HeartbeatWatch(const void* page);

  const void* const page_;
  uint64_t seen_;
};

}  // namespace baton::rpc

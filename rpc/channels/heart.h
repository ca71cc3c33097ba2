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
class Heart {
 public:
  // Unavailable where the system cannot protect it from others.
  static absl::StatusOr<std::shared_ptr<Heart>> Make();
  ~Heart();
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  void Beat();
  // To be handed to who shall watch it.
  const Fd& fd() const { return fd_; }

 private:
  Heart(Fd fd, void* page) : fd_(std::move(fd)), page_(page) {}

  const Fd fd_;
  void* const page_;
};

// The end that watches. Thread-compatible.
class HeartWatch {
 public:
  // InvalidArgument for what no Heart gives.
  static absl::StatusOr<std::unique_ptr<HeartWatch>> Open(const Fd& fd);
  ~HeartWatch();
  HeartWatch(const HeartWatch&) = delete;
  HeartWatch& operator=(const HeartWatch&) = delete;

  // It has beaten since the last time that this was asked, or since Open.
  bool HasBeaten();

 private:
  explicit HeartWatch(const void* page);

  const void* const page_;
  uint64_t seen_;
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/mutex.h"

namespace baton::rpc {

// Counts the living streams, so that what they use can outlive them, and keeps
// how many bytes those that were closed had left to send. Thread-safe.
class StreamCount {
 public:
  // Returns a number for the stream, for Owes and Remove.
  uint64_t Add();
  // The stream was closed before `bytes` of messages for `worker` were sent.
  void Owes(uint64_t stream, const std::string& worker, size_t bytes);
  void Remove(uint64_t stream);
  int count() const;
  void AwaitNone() const;
  // Describes the living streams and what they had left to send, by worker.
  std::string Describe() const;

 private:
  struct Debt {
    std::string worker = {};
    size_t bytes = 0;
  };

  mutable Mutex mutex_;
  mutable CondVar none_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Debt> alive_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc

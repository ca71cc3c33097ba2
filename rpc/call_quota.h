// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace baton::rpc::internal {

// How much each other worker may have waiting at this one, so that none takes
// all memory or all places. Thread-safe.
class CallQuota : public std::enable_shared_from_this<CallQuota> {
 public:
  CallQuota(size_t max_calls, size_t max_bytes)
      : max_calls_(max_calls), max_bytes_(max_bytes) {}

  // Given back when it is dropped.
  using Ticket = std::shared_ptr<void>;
  // For a call of `bytes`. ResourceExhausted, which names the limit, when too
  // many calls of `peer`, or too large ones, wait. One alone may be of any
  // size.
  absl::StatusOr<Ticket> Take(const std::string& peer, size_t bytes);

 private:
  struct Load {
    size_t calls = 0;
    size_t bytes = 0;
  };
  void Give(const std::string& peer, size_t bytes);

  const size_t max_calls_;
  const size_t max_bytes_;
  Mutex mutex_;
  std::map<std::string, Load> loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal

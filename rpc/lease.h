// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

#include "absl/status/status.h"

namespace baton::rpc {

// The shortest lease. A worker is expected to be heard about every fifth of the
// lease, for which a thread must run at both ends. A busy machine cannot
// guarantee that within less than 20 ms, so with a shorter lease healthy
// workers would be declared dead.
constexpr std::chrono::milliseconds kLeastLease{100};
// The longest lease. A longer one that a peer announces counts as this.
constexpr std::chrono::milliseconds kMostLease = std::chrono::hours(24);

// The part of the lease that a worker may stay silent or away before it is
// declared dead. In the rest, a twentieth, whatever waits for that worker is
// told.
constexpr std::chrono::milliseconds SilenceWithin(
    std::chrono::milliseconds lease) {
  return lease - lease / 20;
}

// Returns InvalidArgument unless kLeastLease <= lease <= kMostLease.
absl::Status CheckLease(std::chrono::milliseconds lease);

}  // namespace baton::rpc

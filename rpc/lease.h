// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>

#include "absl/status/status.h"

namespace baton::rpc {

// The shortest lease. A worker is to be heard about every fifth of it, for
// which a thread must have run at both ends: a machine that works does not
// promise that within less than 20 ms, and workers that are well would be given
// up.
constexpr std::chrono::milliseconds kLeastLease{100};
// The longest, which is what others take it for where they are told more.
constexpr std::chrono::milliseconds kMostLease = std::chrono::hours(24);

// What of a lease a worker may be silent or away; in the rest, a twentieth, all
// who wait for it are told.
constexpr std::chrono::milliseconds SilenceWithin(
    std::chrono::milliseconds lease) {
  return lease - lease / 20;
}

// InvalidArgument for a lease that is shorter or longer.
absl::Status CheckLease(std::chrono::milliseconds lease);

}  // namespace baton::rpc

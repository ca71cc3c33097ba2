// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace baton::testing {

// The memory that a process holds, and the CPU time that it has used.
struct ProcessUsage {
  int64_t resident_kb = 0;  // pages it shares with others among them
  int64_t shared_kb = 0;    // of these, shared memory
  int descriptors = 0;
  int threads = 0;
  double cpu_seconds = 0;  // in steps of the kernel's clock, mostly 10 ms
};

// Reads the kernel's figures; NotFound if the process has ended.
absl::StatusOr<ProcessUsage> UsageOf(pid_t pid);

}  // namespace baton::testing

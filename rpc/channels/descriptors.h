// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "absl/status/status.h"

// How many descriptors this process has, and what is kept of them for other
// things than connections that come.
namespace baton::rpc {

// The soft limit of descriptors becomes the hard one, once a process: a worker
// has up to four for each other one. Programs that call select() must then
// have their descriptors before.
void RaiseDescriptorLimit();

// ResourceExhausted, which names the limit, when as few descriptors are free as
// are kept for what goes on here: `reserves` times an eighth of them, at most
// 128. `lowest` is the lowest number that was free just now: the kernel gives
// them in order.
absl::Status CheckDescriptors(int lowest, size_t reserves);
// Looks for that itself.
absl::Status CheckDescriptors(size_t reserves);

}  // namespace baton::rpc

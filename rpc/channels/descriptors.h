// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "absl/status/status.h"

// Limits on this process's file descriptors, and the reserve that incoming
// connections may not use.
namespace baton::rpc {

// Raises the soft limit of descriptors to the hard one, once per process: a
// worker needs up to four for each peer. Programs that call select() must have
// opened their descriptors before.
void RaiseDescriptorLimit();

// Returns ResourceExhausted, naming the limit, unless more descriptors are free
// than the reserve for established work: `reserves` times an eighth of the
// limit, each at most 128. `lowest` is the lowest descriptor number that was
// just free; the kernel assigns numbers in order.
absl::Status CheckDescriptors(int lowest, size_t reserves);
// The same; finds the lowest free number itself.
absl::Status CheckDescriptors(size_t reserves);

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/futex_event.h"
#include "rpc/channels/shared_budget.h"

namespace baton::rpc {

// Pins memory until the last copy of the result is dropped; returns null if it
// cannot.
using Pin = std::function<std::shared_ptr<void>(void* data, size_t bytes)>;

struct SharedMemoryOptions {
  // The path of the socket that passes segments, in a directory that only this
  // user may enter.
  std::string socket_path = {};
  // The most bytes of segments that are made for tensors sent to peers, beside
  // the first 64 KB for each peer, and the most bytes of peers' segments that
  // are mapped. Further tensors use other ways. The limit holds for all workers
  // of this process with the same budgets (null: those of the process).
  size_t bytes = size_t{1} << 30;
  std::shared_ptr<SharedBudget> made = nullptr;
  std::shared_ptr<SharedBudget> mapped = nullptr;
  // Memory that was not used for so long is returned on connections with beats;
  // when the budget is short, after a second.
  std::chrono::milliseconds idle{30'000};
  // Pins each mapped segment of a peer beyond its first 64 KB while it is
  // mapped, so that GPUs of this process copy from it at the full rate. Empty
  // for no pinning.
  Pin pin = {};
  // The futex event of this process if small messages use rings, else null.
  std::shared_ptr<FutexEvent> wakeup = nullptr;
};

// Makes the channel of shared memory, for CPU tensors between processes of one
// machine and user. The sender copies the elements once into a block of a
// segment that it shares with this one peer. The receiver's tensor is that
// block, which it may read and write until it releases the lease. Segments are
// made on demand: a tensor without room causes one for later tensors. If there
// can be no shared memory, Offer of the result returns the reason.
std::shared_ptr<ChannelKind> MakeSharedMemory(
    const SharedMemoryOptions& options);

}  // namespace baton::rpc

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

// Pins memory until the last copy of the result goes; null where it cannot be.
using Pin = std::function<std::shared_ptr<void>(void* data, size_t bytes)>;

struct SharedMemoryOptions {
  // Where the socket is made that hands segments on: in a directory that only
  // this user may enter.
  std::string socket_path = {};
  // What is made for tensors on their way to peers, or in their use, may come
  // to so much, beside the first 64 KB for each, and so may what is mapped of
  // theirs; tensors beyond travel otherwise. Of all workers of this process
  // that have the same budgets (null: those of the process).
  size_t bytes = size_t{1} << 30;
  std::shared_ptr<SharedBudget> made = nullptr;
  std::shared_ptr<SharedBudget> mapped = nullptr;
  // What was not used for so long is given back, where connections beat; after
  // a second when the budget is short.
  std::chrono::milliseconds idle{30'000};
  // For all that is mapped of a peer's beyond its first 64 KB, as long as it
  // is: GPUs of this process then copy from it at the full rate. Empty: for
  // none.
  Pin pin = {};
  // Of this process, where small messages shall go by rings; null: nowhere.
  std::shared_ptr<FutexEvent> wakeup = nullptr;
};

// Shared memory, for CPU tensors between processes of one machine and user. The
// sender copies the elements once into a block of a segment that it shares with
// this one peer; the receiver's tensor is that block, to read and to write,
// until its lease is back. Segments are made on demand, before they are
// needed: a tensor for which there is no room makes the next one find some.
// Where it cannot be had, what is made offers the reason.
std::shared_ptr<ChannelKind> MakeSharedMemory(
    const SharedMemoryOptions& options);

}  // namespace baton::rpc

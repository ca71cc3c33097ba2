// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/futex_event.h"
#include "rpc/channels/message_ring.h"

namespace baton::rpc {

// The ends of rings that a connection has here, each with the wakeup of the
// process at the other end, which is rung for bytes or for room.
struct RingEndIn {
  std::unique_ptr<RingReader> ring;
  std::shared_ptr<FutexWaker> wakeup;
};
struct RingEndOut {
  std::unique_ptr<RingWriter> ring;
  std::shared_ptr<FutexWaker> wakeup;
};

}  // namespace baton::rpc

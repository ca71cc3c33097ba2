// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/futex_event.h"
#include "rpc/channels/message_ring.h"

namespace baton::rpc {

// This process's ends of the rings of a connection, each with the waker of the
// peer, to be called when there are bytes to read or room to write.
struct RingEndIn {
  std::unique_ptr<RingReader> ring;
  std::shared_ptr<FutexWaker> wakeup;
};
struct RingEndOut {
  std::unique_ptr<RingWriter> ring;
  std::shared_ptr<FutexWaker> wakeup;
};

}  // namespace baton::rpc

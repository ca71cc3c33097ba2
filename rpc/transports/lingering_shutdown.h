// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rpc/transport.h"

namespace baton::rpc {

// A transport whose connections may outlast its Shutdown. gRPC ends a stream
// only when the socket has accepted or refused what was written to it. While
// the peer is stopped, its socket may do neither.
class LingeringTransport : public Transport {
 public:
  // Called by one thread after Shutdown, which has closed everything. Returns
  // when no other thread uses this object any more, which may be never.
  virtual void AwaitEnd() = 0;
  // Describes what AwaitEnd waits for. May be called on any thread.
  virtual std::string Remains() = 0;
};

// Returns `transport` with a Shutdown, and so a destructor, that takes at most
// half a second more than its timeout. What has not ended by then is left, with
// a warning, to a thread that waits for it and frees it. A process may exit
// while such a thread waits. Thread-safe.
std::unique_ptr<Transport> WithLingeringShutdown(
    std::shared_ptr<LingeringTransport> transport);

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rpc/transport.h"

namespace baton::rpc {

// A transport whose connections may outlast its Shutdown. gRPC ends a stream
// only when the socket has taken or refused what was written to it, and the
// socket of a peer that is stopped may do neither for as long as both live.
class LingeringTransport : public Transport {
 public:
  // After Shutdown, which has closed everything: returns when no other thread
  // uses this object any more. May take for ever. Called by one thread.
  virtual void AwaitEnd() = 0;
  // What AwaitEnd waits for, in words; on any thread.
  virtual std::string Remains() = 0;
};

// `transport`, with a Shutdown (and so a destructor) that takes at most half a
// second more than its timeout. What has not ended by then is left, with a
// warning, to a thread that waits for it and frees it. A process may end while
// such a thread waits. Thread-safe.
std::unique_ptr<Transport> WithLingeringShutdown(
    std::shared_ptr<LingeringTransport> transport);

// How many transports of this process such threads wait for.
int LingeringTransports();

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

// A thread that serves sockets: it calls a socket's step whenever the step can
// proceed without waiting. If no step can, it spins for a while
// (core/spinning.h) and sleeps. Thread-safe.
class SocketPoller {
 public:
  // When the next step of a socket is to be called.
  enum class Then {
    kWhenReady,     // when the socket can be read, or written
    kWhenReadable,  // when it can be read, and so from now on
    kWhenWoken,     // when Wake is called
    kAgain,         // after the steps of other sockets
    kEnd,           // never; the poller releases the socket
  };
  using Step = absl::AnyInvocable<Then()>;
  enum class For { kReading, kWriting };

  // `name` is the name of the thread, of at most 15 characters.
  explicit SocketPoller(const char* name);
  ~SocketPoller();  // drops the remaining sockets and tasks
  SocketPoller(const SocketPoller&) = delete;
  SocketPoller& operator=(const SocketPoller&) = delete;

  // Must be called first; further calls do nothing. Returns Unavailable if no
  // descriptors are left.
  absl::Status Start();
  // The first step is called at once. Steps run on the poller's thread and must
  // not wait. Returns the id for Wake.
  absl::StatusOr<uint64_t> Add(std::shared_ptr<const Fd> socket, For what,
                               Step step);
  // Calls a step soon, whatever the last one returned, unless that was kEnd.
  void Wake(uint64_t id);
  // Runs the task after `delay`, on the poller's thread, unless the poller has
  // ended by then.
  void After(std::chrono::milliseconds delay, Task task);
  // When this returns nothing runs any more, unless a step or task called it.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;  // the thread may drop the poller
};

}  // namespace baton::rpc

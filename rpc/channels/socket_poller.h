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

// A thread that looks after sockets: it does with each what there is to be done
// whenever that can be done without waiting, and otherwise spins for a while
// (core/spinning.h) and sleeps. Thread-safe.
class SocketPoller {
 public:
  // What a step leaves its socket to.
  enum class Then {
    kWhenReady,     // the next step comes when it can be read, or written
    kWhenReadable,  // and from now on when it can be read
    kWhenWoken,     // when Wake is called
    kAgain,         // when others have had theirs
    kEnd,           // no more; the poller lets go of the socket
  };
  using Step = absl::AnyInvocable<Then()>;
  enum class For { kReading, kWriting };

  // `name`, of the thread: at most 15 characters.
  explicit SocketPoller(const char* name);
  ~SocketPoller();  // drops what is left
  SocketPoller(const SocketPoller&) = delete;
  SocketPoller& operator=(const SocketPoller&) = delete;

  // Before anything else; only the first call does anything. Unavailable where
  // there are no descriptors left.
  absl::Status Start();
  // The first step comes at once. Steps run on the poller's thread and never
  // wait. Gives what Wake takes.
  absl::StatusOr<uint64_t> Add(std::shared_ptr<const Fd> socket, For what,
                               Step step);
  // A step comes soon, whatever the last one said. Without effect after the
  // last one.
  void Wake(uint64_t id);
  // Runs it then, on the poller's thread, unless the poller is gone.
  void After(std::chrono::milliseconds delay, Task task);
  // Nothing runs any more when it returns, unless it is called by what runs.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;  // the thread may drop the poller
};

}  // namespace baton::rpc

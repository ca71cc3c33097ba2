// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

// A thread that serves sockets: it calls a socket's step whenever the step can
// proceed without waiting. If no step can, it spins for a while
// (core/spinning.h) and sleeps. Thread-safe.
class SocketPoller : public std::enable_shared_from_this<SocketPoller> {
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

  // `name` is the name of the thread, of at most 15 characters. With the last
  // copy of the result, which a step may drop, the poller stops and drops the
  // remaining sockets and tasks.
  static std::shared_ptr<SocketPoller> Make(const char* name);

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
  using Clock = std::chrono::steady_clock;
  struct Source {
    std::shared_ptr<const Fd> socket;
    uint32_t events;
    Step step;
  };
  using Ids = std::vector<uint64_t>;

  explicit SocketPoller(const char* name) : name_(name) {}

  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  // Adds the woken sockets and the tasks that are due. False at the end.
  bool Gather(Ids& ready, std::vector<Task>& due);
  void Serve(uint64_t id, Ids& again);
  void Await(Ids& ready);
  int SleepLimit();

  const char* const name_;

  Mutex mutex_;
  Fd epoll_, wakeup_;  // written before the thread begins
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<uint64_t, Source>> added_ ABSL_GUARDED_BY(mutex_);
  Ids woken_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, Task> timers_ ABSL_GUARDED_BY(mutex_);

  std::map<uint64_t, Source> sources_;  // used by the thread only
};

}  // namespace baton::rpc

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/futex_event.h"

namespace baton::rpc {

// What a poller watches. Ready is called often and on several threads, so it
// must cost next to nothing. Serve is called by one thread at a time, without
// locks, and must not wait.
class RingSource {
 public:
  virtual ~RingSource() = default;
  virtual bool Ready() = 0;
  virtual void Serve() = 0;
};

// The threads of one transport that serve the rings of all its links. One of
// them is the leader:
//
//   leads    --a source is ready-->   serves it, and stays the leader
//   leads    --nothing is ready-->    spins for a short while, if that has paid
//                                     off lately; then sleeps on the event
//   leads    --was given a task-->    gives up the lead by arming the event and
//            (core/inline_task.h)     runs the task itself
//   sleeps   --the event is set-->    becomes the leader, if there is none
//
// If something arrives while the former leader runs its task, the event wakes
// the other thread, which leads then. So a task that waits delays nobody.
// Thread-safe.
class RingPoller {
 public:
  explicit RingPoller(std::shared_ptr<FutexEvent> wakeup);
  ~RingPoller();
  RingPoller(const RingPoller&) = delete;
  RingPoller& operator=(const RingPoller&) = delete;

  void Add(std::shared_ptr<RingSource> source);
  // A call of Serve that is under way may still be running when this returns.
  void Remove(const RingSource* source);
  // Wakes a thread, because this process itself has made a source ready.
  void Wake();
  // To be called now and then, because any process that may write the event may
  // have broken it: wakes all threads if the source is ready but no thread
  // leads.
  void Check(RingSource& source);
  // When this returns nothing is served any more, except by the calling thread.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace baton::rpc

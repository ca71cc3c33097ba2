// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/futex_event.h"

namespace baton::rpc {

// What a poller looks at. Ready is asked often and on several threads, and
// costs next to nothing; Serve is called by one of them at a time, without
// locks, and never waits.
class RingSource {
 public:
  virtual ~RingSource() = default;
  virtual bool Ready() = 0;
  virtual void Serve() = 0;
};

// The threads of one transport that look after the rings of all its links. One
// of them leads: it serves what is ready, spins for a short while where that
// has been worth it lately, and then sleeps until the wakeup rings. A task
// that others want done (core/inline_task.h) it does itself once it has handed
// the lead to the wakeup: should something come meanwhile, the other thread is
// woken and leads. So a task that waits holds up nobody. Thread-safe.
class RingPoller {
 public:
  static std::shared_ptr<RingPoller> Make(std::shared_ptr<FutexEvent> wakeup);
  virtual ~RingPoller() = default;

  virtual void Add(std::shared_ptr<RingSource> source) = 0;
  // It may still be served by a call under way.
  virtual void Remove(const RingSource* source) = 0;
  // A source may be ready for a reason of this process.
  virtual void Wake() = 0;
  // Should the wakeup have been spoilt by who may write it: all wake if the
  // source is ready and nobody sees to it. Now and then.
  virtual void Check(RingSource& source) = 0;
  // Nothing is served any more when this returns, save by the calling thread.
  virtual void Stop() = 0;
};

}  // namespace baton::rpc

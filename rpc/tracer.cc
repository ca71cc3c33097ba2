// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/tracer.h"

#include <algorithm>
#include <utility>

namespace baton::rpc {

void Tracer::Start(size_t limit, Clock::time_point until) {
  MutexLock lock(mutex_);
  if (on()) {
    until_ = std::max(until_, until);
    return;
  }
  limit_ = limit;
  until_ = until;
  log_ = {};
  on_ = true;
}

void Tracer::Add(TraceEvent event) {
  MutexLock lock(mutex_);
  if (!on()) return;
  if (Clock::now() > until_) {
    on_ = false;
    return;
  }
  if (log_.events.size() >= limit_) {
    ++log_.dropped;
    return;
  }
  log_.events.push_back(std::move(event));
}

TraceLog Tracer::Take() {
  MutexLock lock(mutex_);
  on_ = false;
  return std::exchange(log_, {});
}

}  // namespace baton::rpc

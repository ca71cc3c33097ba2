// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/tracer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::rpc {

void Tracer::AddSource(std::shared_ptr<TraceSource> source) {
  MutexLock switching(switching_);
  sources_.push_back(std::move(source));
}

void Tracer::Start(size_t limit, Clock::time_point until) {
  MutexLock switching(switching_);
  {
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
  // A recording that ended by itself may have left something in the sources.
  for (const auto& source : sources_) {
    (void)source->Take();
    source->Start(limit);
  }
}

void Tracer::Add(TraceEvent event) {
  if (Keep(std::move(event))) EndSourcesUnlessOn();
}

bool Tracer::Keep(TraceEvent event) {
  MutexLock lock(mutex_);
  if (!on()) return false;
  if (Clock::now() > until_) {
    on_ = false;
    return true;
  }
  if (log_.events.size() >= limit_) {
    ++log_.dropped;
    return false;
  }
  log_.events.push_back(std::move(event));
  return false;
}

void Tracer::EndSourcesUnlessOn() {
  MutexLock switching(switching_);
  if (on()) return;
  for (const auto& source : sources_) (void)source->Take();
}

TraceLog Tracer::Take() {
  MutexLock switching(switching_);
  TraceLog log;
  {
    MutexLock lock(mutex_);
    on_ = false;
    log = std::exchange(log_, {});
  }
  for (const auto& source : sources_) {
    TraceLog more = source->Take();
    log.dropped += more.dropped;
    std::move(more.events.begin(), more.events.end(),
              std::back_inserter(log.events));
    std::move(more.notes.begin(), more.notes.end(),
              std::back_inserter(log.notes));
  }
  std::stable_sort(log.events.begin(), log.events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) {
                     return a.end_ns < b.end_ns;
                   });
  return log;
}

}  // namespace baton::rpc

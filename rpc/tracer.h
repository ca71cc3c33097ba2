// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace baton::rpc {

// One thing that took time at a worker. Times are nanoseconds of the worker's
// steady clock; they compare between workers once their clocks' offsets are
// known. Plain data.
struct TraceEvent {
  enum class Kind : uint8_t {
    kCall,   // made here: begun, sent, answer came (end); number: with `peer`
    kServe,  // served here: came (begin), handler began (mid), answer left
             // (end)
    kSpan,   // work of a layer above, on `track`
  };
  Kind kind = Kind::kSpan;
  bool ok = true;
  std::string name;
  std::string peer;     // of a call; of a span, its track
  uint64_t number = 0;  // of a call among those of its caller to its callee
  int64_t begin_ns = 0;
  int64_t mid_ns = 0;
  int64_t end_ns = 0;
  uint64_t request_bytes = 0;
  uint64_t answer_bytes = 0;
  static constexpr auto Fields() {
    return std::tuple{&TraceEvent::kind,          &TraceEvent::ok,
                      &TraceEvent::name,          &TraceEvent::peer,
                      &TraceEvent::number,        &TraceEvent::begin_ns,
                      &TraceEvent::mid_ns,        &TraceEvent::end_ns,
                      &TraceEvent::request_bytes, &TraceEvent::answer_bytes};
  }
};

// What Tracer::Take gives.
struct TraceLog {
  std::vector<TraceEvent> events;  // in the order of their ends
  uint64_t dropped = 0;            // beyond the limit
  std::vector<std::string> notes;  // what could not be had, for people
  static constexpr auto Fields() {
    return std::tuple{&TraceLog::events, &TraceLog::dropped, &TraceLog::notes};
  }
};

// What else can record while a tracer is on, at its own limit. Called by the
// tracer alone, one call at a time; these may take milliseconds.
class TraceSource {
 public:
  virtual ~TraceSource() = default;
  virtual void Start(size_t limit) = 0;
  // Ends; nothing if it was not started.
  virtual TraceLog Take() = 0;
};

// Keeps what happens at a worker while it is on. Off, it costs one read of a
// flag where something could be kept. Thread-safe.
class Tracer {
 public:
  using Clock = std::chrono::steady_clock;
  static int64_t Now() { return Nanos(Clock::now()); }
  static int64_t Nanos(Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               time.time_since_epoch())
        .count();
  }

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Begins anew, for at most `limit` events and until `until`: whoever asked
  // may die. On again: the first limit and the later end count.
  void Start(size_t limit, Clock::time_point until);
  // Nothing unless on.
  void Add(TraceEvent event);
  // Ends, and gives what was kept, with what the sources have.
  TraceLog Take();

  // From the next start on.
  void AddSource(std::shared_ptr<TraceSource> source);

 private:
  // True if this event came too late, and ended it.
  bool Keep(TraceEvent event);
  void EndSourcesUnlessOn();

  std::atomic<bool> on_{false};
  // Held by who starts and ends, before the other one, which is never held
  // while a source works.
  Mutex switching_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::shared_ptr<TraceSource>> sources_
      ABSL_GUARDED_BY(switching_);
  Mutex mutex_;
  size_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point until_ ABSL_GUARDED_BY(mutex_);
  TraceLog log_ ABSL_GUARDED_BY(mutex_);
};

// Times a piece of work of a layer above rpc, for as long as it lives. Confined
// to one thread; the tracer must outlive it.
class TraceSpan {
 public:
  // `name` gives the name, asked only while the tracer is on.
  template <typename Name>
  TraceSpan(Tracer& tracer, const std::string& track, const Name& name)
      : tracer_(tracer.on() ? &tracer : nullptr) {
    if (tracer_ == nullptr) return;
    event_.name = name();
    event_.peer = track;
    event_.begin_ns = Tracer::Now();
  }
  ~TraceSpan() {
    if (tracer_ == nullptr) return;
    event_.end_ns = Tracer::Now();
    tracer_->Add(std::move(event_));
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Tracer* const tracer_;
  TraceEvent event_;
};

}  // namespace baton::rpc

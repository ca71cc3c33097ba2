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

// One call or other piece of work at a worker. Times are nanoseconds of the
// worker's steady clock; to compare them between workers, the offsets of the
// clocks must be known. Plain data.
struct TraceEvent {
  enum class Kind : uint8_t {
    kCall,   // a call made here: begun (begin), sent (mid), answered (end)
    kServe,  // a call served here: arrived (begin), run (mid), answered (end)
    kSpan,   // work of a layer above, on `track`
  };
  Kind kind = Kind::kSpan;
  bool ok = true;
  std::string name;
  std::string peer;     // the peer of a call; the track of a span
  uint64_t number = 0;  // numbers the calls of one caller to one callee
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

// The result of Tracer::Take.
struct TraceLog {
  std::vector<TraceEvent> events;  // ordered by end_ns
  uint64_t dropped = 0;            // number of events beyond the limit
  std::vector<std::string> notes;  // what could not be recorded, for display
  static constexpr auto Fields() {
    return std::tuple{&TraceLog::events, &TraceLog::dropped, &TraceLog::notes};
  }
};

// Another recorder that runs while a tracer is on, with a limit of its own.
// Only the tracer calls it, one call at a time. Calls may take milliseconds.
class TraceSource {
 public:
  virtual ~TraceSource() = default;
  virtual void Start(size_t limit) = 0;
  // Ends the recording and returns it; empty if it was not started.
  virtual TraceLog Take() = 0;
};

// Records events of a worker while it is on. While it is off, each place that
// could record costs one read of a flag. Thread-safe.
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
  // Begins a new recording of at most `limit` events, which ends at `until` in
  // case the client that asked for it has died. If the tracer is already on, it
  // keeps its limit and takes the later end.
  void Start(size_t limit, Clock::time_point until);
  // Does nothing unless the tracer is on.
  void Add(TraceEvent event);
  // Ends the recording and returns it together with those of the sources.
  TraceLog Take();

  // Adds a source, which is used from the next Start on.
  void AddSource(std::shared_ptr<TraceSource> source);

 private:
  // Returns true if the event came after the end time and so ended the
  // recording.
  bool Keep(TraceEvent event);
  void EndSourcesUnlessOn();

  std::atomic<bool> on_{false};
  // Held while the recording is started or ended. It is locked before mutex_,
  // which is never held during calls to a source.
  Mutex switching_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::shared_ptr<TraceSource>> sources_
      ABSL_GUARDED_BY(switching_);
  Mutex mutex_;
  size_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point until_ ABSL_GUARDED_BY(mutex_);
  TraceLog log_ ABSL_GUARDED_BY(mutex_);
};

// Records its own lifetime as a span, for work of a layer above rpc. Confined
// to one thread; the tracer must outlive it.
class TraceSpan {
 public:
  // `name` returns the span's name; it is called only if the tracer is on.
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

// Returns a tracer that, while it is on, also records what this process's GPUs
// run, as spans on tracks like "cuda:0 stream 7". Of several such tracers in
// one process only the first that is started records GPUs. If recording is not
// possible, the log's notes say why.
std::shared_ptr<Tracer> MakeTracerWithGpus();

}  // namespace baton::rpc

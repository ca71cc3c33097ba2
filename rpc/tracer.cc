// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/tracer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gpu_recording.h"
#include "core/mutex.h"

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

namespace {

class GpuSource final : public TraceSource {
 public:
  void Start(size_t limit) override {
    auto recording = StartGpuRecording(limit);
    MutexLock lock(mutex_);
    missing_.clear();
    if (recording.ok()) {
      recording_ = *std::move(recording);
    } else {
      missing_ = std::string(recording.status().message());
    }
  }

  TraceLog Take() override {
    std::unique_ptr<GpuRecording> recording;
    TraceLog log;
    {
      MutexLock lock(mutex_);
      recording = std::exchange(recording_, nullptr);
      if (!missing_.empty())
        log.notes.push_back(absl::StrCat("no work of GPUs: ", missing_));
    }
    if (recording == nullptr) return log;
    GpuActivityLog taken = recording->Take();
    log.dropped = taken.dropped;
    log.events.reserve(taken.activities.size());
    for (GpuActivity& activity : taken.activities) {
      log.events.push_back({.kind = TraceEvent::Kind::kSpan,
                            .name = std::move(activity.name),
                            .peer = absl::StrCat("cuda:", activity.device,
                                                 " stream ", activity.stream),
                            .begin_ns = activity.begin_ns,
                            .mid_ns = activity.begin_ns,
                            .end_ns = activity.end_ns,
                            .request_bytes = activity.bytes});
    }
    return log;
  }

 private:
  Mutex mutex_;
  std::unique_ptr<GpuRecording> recording_ ABSL_GUARDED_BY(mutex_);
  std::string missing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Tracer> MakeTracerWithGpus() {
  auto tracer = std::make_shared<Tracer>();
  tracer->AddSource(std::make_shared<GpuSource>());
  return tracer;
}

}  // namespace baton::rpc

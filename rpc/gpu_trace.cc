// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/gpu_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gpu_recording.h"
#include "core/mutex.h"

namespace baton::rpc {
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

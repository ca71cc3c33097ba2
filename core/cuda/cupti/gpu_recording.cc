// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/gpu_recording.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/cuda/cupti/library.h"
#include "core/cuda/cupti/records.h"
#include "core/cuda/memory.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton {
namespace {

using cuda::Cupti;

constexpr size_t kBufferBytes = size_t{1} << 20;
// CUPTI fills one buffer while we read another. It drops and counts what does
// not fit into these.
constexpr int kMostBuffers = 32;
constexpr size_t kAlignment = 8;
constexpr int kReadings = 20;

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

// CUPTI has one set of callbacks for a process, and passes them no argument of
// ours.
struct Session {
  std::atomic<int> buffers{0};  // number that CUPTI has
  Mutex mutex;
  bool registered ABSL_GUARDED_BY(mutex) = false;
  bool running ABSL_GUARDED_BY(mutex) = false;
  // Null between recordings: late activities are discarded.
  std::shared_ptr<GpuActivityBuffer> log ABSL_GUARDED_BY(mutex);

  std::shared_ptr<GpuActivityBuffer> Log() {
    MutexLock lock(mutex);
    return log;
  }
};

Session& TheSession() {
  static auto* const session = new Session;  // CUPTI's threads outlive main
  return *session;
}

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size,
                                size_t* most_records) {
  *buffer = nullptr;
  *size = *most_records = 0;
  Session& session = TheSession();
  if (session.buffers.fetch_add(1) < kMostBuffers)
    *buffer =
        static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  if (*buffer == nullptr) {
    session.buffers.fetch_sub(1);
  } else {
    *size = kBufferBytes;
  }
}

void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream,
                                uint8_t* buffer, size_t, size_t valid) {
  Session& session = TheSession();
  const Cupti& cupti = *cuda::OpenCupti();
  if (const auto log = session.Log(); log != nullptr && buffer != nullptr) {
    CUpti_Activity* record = nullptr;
    while (cupti.get_next_record(buffer, valid, &record) == CUPTI_SUCCESS)
      cuda::AddRecord(*record, *log);
    size_t dropped = 0;
    if (cupti.get_dropped(context, stream, &dropped) == CUPTI_SUCCESS)
      log->Drop(dropped);
  }
  if (buffer == nullptr) return;
  std::free(buffer);
  session.buffers.fetch_sub(1);
}

int64_t SteadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<std::vector<ClockReading>> ReadClock(const Cupti& cupti) {
  std::vector<ClockReading> readings;
  for (int i = 0; i < kReadings; ++i) {
    ClockReading reading{.asked_ns = SteadyNs()};
    uint64_t read = 0;
    RETURN_IF_ERROR(cupti.StatusOf("clock", cupti.get_timestamp(&read)));
    reading.read_ns = static_cast<int64_t>(read);
    reading.answered_ns = SteadyNs();
    readings.push_back(reading);
  }
  return readings;
}

void Disable(const Cupti& cupti) {
  for (const CUpti_ActivityKind kind : kKinds) cupti.disable(kind);
}

absl::Status Enable(const Cupti& cupti) {
  for (const CUpti_ActivityKind kind : kKinds) {
    const absl::Status enabled = cupti.StatusOf("enable", cupti.enable(kind));
    if (enabled.ok()) continue;
    Disable(cupti);
    return enabled;
  }
  return absl::OkStatus();
}

// The session's mutex must not be held, because CUPTI may call back from these.
absl::StatusOr<std::vector<ClockReading>> Begin(const Cupti& cupti) {
  ASSIGN_OR_RETURN(std::vector<ClockReading> readings, ReadClock(cupti));
  RETURN_IF_ERROR(Enable(cupti));
  return readings;
}

class Recording final : public GpuRecording {
 public:
  Recording(const Cupti& cupti, std::vector<ClockReading> before,
            std::shared_ptr<GpuActivityBuffer> log)
      : cupti_(cupti), before_(std::move(before)), log_(std::move(log)) {}
  ~Recording() override { End(); }

  GpuActivityLog Take() override {
    End();
    auto after = ReadClock(cupti_);
    if (!after.ok()) LogWarning(after.status().ToString());
    return log_->Take(ClockLine(before_, after.ok() ? *after : before_));
  }

 private:
  void End() {
    if (std::exchange(ended_, true)) return;
    // Flushes twice: activities reported in between must not wait for the next
    // recording.
    Flush();
    Disable(cupti_);
    Flush();
    Session& session = TheSession();
    MutexLock lock(session.mutex);
    session.log = nullptr;
    session.running = false;
  }

  void Flush() {
    const absl::Status flushed = cupti_.StatusOf(
        "flush", cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    if (!flushed.ok()) LogWarning(flushed.ToString());
  }

  const Cupti& cupti_;
  const std::vector<ClockReading> before_;
  const std::shared_ptr<GpuActivityBuffer> log_;
  bool ended_ = false;
};

absl::Status Claim(const Cupti& cupti, std::shared_ptr<GpuActivityBuffer> log) {
  Session& session = TheSession();
  MutexLock lock(session.mutex);
  if (session.running) {
    return absl::AlreadyExistsError(
        "the GPUs of this process are being recorded already");
  }
  if (!session.registered) {
    RETURN_IF_ERROR(cupti.StatusOf(
        "callbacks",
        cupti.register_callbacks(&OnBufferRequested, &OnBufferCompleted)));
    session.registered = true;
  }
  session.running = true;
  session.log = std::move(log);
  return absl::OkStatus();
}

void Unclaim() {
  Session& session = TheSession();
  MutexLock lock(session.mutex);
  session.running = false;
  session.log = nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuRecording>> StartGpuRecording(size_t limit) {
  if (cuda::DeviceCount() == 0)
    return absl::FailedPreconditionError("this process sees no GPU");
  RETURN_IF_ERROR(cuda::OpenCupti().status());
  const Cupti& cupti = *cuda::OpenCupti();
  auto log = std::make_shared<GpuActivityBuffer>(limit);
  RETURN_IF_ERROR(Claim(cupti, log));
  auto readings = Begin(cupti);
  if (!readings.ok()) {
    Unclaim();
    return readings.status();
  }
  return std::make_unique<Recording>(cupti, *std::move(readings),
                                     std::move(log));
}

}  // namespace baton

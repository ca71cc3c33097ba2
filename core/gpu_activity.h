// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock_reading.h"
#include "core/mutex.h"

namespace baton {

// A kernel, copy or fill that a GPU ran. Times are nanoseconds of the host's
// steady clock, streams as CUDA numbers them in this process. Plain data.
struct GpuActivity {
  std::string name;
  int device = 0;
  uint32_t stream = 0;
  uint64_t bytes = 0;  // of copies and fills
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct GpuActivityLog {
  std::vector<GpuActivity> activities;  // as they were reported
  uint64_t dropped = 0;                 // for want of room
};

// Times of another clock by the steady one: of the readings before and after,
// the fastest each; what lies between goes by a straight line. Immutable.
class ClockLine {
 public:
  // There is at least one of each.
  ClockLine(const std::vector<ClockReading>& before,
            const std::vector<ClockReading>& after);
  int64_t ToSteady(int64_t read_ns) const;
  // When the line begins, by the other clock.
  int64_t begin_ns() const { return read_ns_; }

 private:
  int64_t read_ns_ = 0;
  int64_t steady_ns_ = 0;
  double pace_ = 1;  // of the steady clock by the other
};

// What is reported while GPUs work, by their own clock; at most `limit`, the
// rest is counted. A name is kept once. Thread-safe.
class GpuActivityBuffer {
 public:
  explicit GpuActivityBuffer(size_t limit) : limit_(limit) {}

  // GpuActivity, but by the other clock, and named as the compiler did.
  struct Entry {
    int device = 0;
    uint32_t stream = 0;
    uint64_t bytes = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  // Nothing where the times make no sense: of what had not ended.
  void Add(std::string_view symbol, const Entry& entry);
  void Drop(uint64_t count);
  // What ended before the clock's line begins, of an earlier recording, is left
  // out.
  GpuActivityLog Take(const ClockLine& clock);

 private:
  struct Named {
    uint32_t name = 0;
    Entry entry;
  };
  const size_t limit_;
  Mutex mutex_;
  std::map<std::string, uint32_t, std::less<>> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<Named> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A kernel's name for people: without result, arguments and unnamed namespaces,
// and of 120 characters at most. What is no mangled name stays as it is.
std::string KernelName(std::string_view symbol);

}  // namespace baton

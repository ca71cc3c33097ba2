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
// steady clock; streams have CUDA's numbers in this process. Plain data.
struct GpuActivity {
  std::string name;
  int device = 0;
  uint32_t stream = 0;
  uint64_t bytes = 0;  // for copies and fills
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// What a recording has collected.
struct GpuActivityLog {
  std::vector<GpuActivity> activities;  // in the order in which they were
                                        // reported
  uint64_t dropped = 0;                 // number that did not fit
};

// Converts times of another clock to the steady clock, linearly between the
// fastest reading before and the fastest one after. Immutable.
class ClockLine {
 public:
  // Both must have at least one reading.
  ClockLine(const std::vector<ClockReading>& before,
            const std::vector<ClockReading>& after);
  int64_t ToSteady(int64_t read_ns) const;
  // The beginning of the line, by the other clock.
  int64_t begin_ns() const { return read_ns_; }

 private:
  int64_t read_ns_ = 0;
  int64_t steady_ns_ = 0;
  double pace_ = 1;  // steady time per time of the other clock
};

// Collects the activities that GPUs report, in the time of their own clock;
// keeps at most `limit` of them and counts the others. Stores each name once.
// Thread-safe.
class GpuActivityBuffer {
 public:
  explicit GpuActivityBuffer(size_t limit) : limit_(limit) {}

  // A GpuActivity without its name, in the time of the other clock.
  struct Entry {
    int device = 0;
    uint32_t stream = 0;
    uint64_t bytes = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  // `symbol` is the name that the compiler gave. Ignores entries with
  // impossible times, which work that has not ended may have.
  void Add(std::string_view symbol, const Entry& entry);
  // Counts activities that the GPU's library has lost.
  void Drop(uint64_t count);
  // Empties the buffer. Leaves out what ended before the clock's line begins:
  // it belongs to an earlier recording.
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

// Returns a kernel's name for display: without result, arguments and unnamed
// namespaces, and with at most 120 characters. A name that is not mangled stays
// unchanged.
std::string KernelName(std::string_view symbol);

}  // namespace baton

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/stream.h"

namespace baton::dist {

// The time that steps take, and the bytes that they send. On a GPU, the waiting
// time is that of the last finished step, counted for every step since the
// previous query. Plain data.
struct DataParallelFigures {
  int64_t steps = 0;
  double backward_s = 0;  // over all steps, until the member's own gradients
                          // are ready
  double waited_s = 0;  // after that, until all members' gradients are reduced
  int64_t bytes = 0;    // size of the gradients that were reduced
};

// Measures the times of steps, including replayed ones. On a GPU it uses
// events. Thread-compatible.
class StepClock {
 public:
  explicit StepClock(Device device)
      : on_gpu_(device.is_cuda()), computed_(device), reduced_(device) {}

  // Record times on the GPU; each replay records them anew.
  void Computed(const Stream& stream) { computed_.RecordTime(stream); }
  void Reduced(const Stream& stream) { reduced_.RecordTime(stream); }
  // Counts a step. On a GPU its waiting time comes from the events instead.
  void Count(int64_t bytes, double backward_s, double waited_s) {
    ++figures_.steps;
    figures_.bytes += bytes;
    figures_.backward_s += backward_s;
    if (on_gpu_) {
      ++untimed_;
    } else {
      figures_.waited_s += waited_s;
    }
  }
  DataParallelFigures figures() {
    if (untimed_ > 0 && reduced_.HasEnded()) {
      const double last = reduced_.MillisecondsSince(computed_) * 1e-3;
      figures_.waited_s +=
          std::max(last, 0.0) * static_cast<double>(std::exchange(untimed_, 0));
    }
    return figures_;
  }

 private:
  const bool on_gpu_;
  Event computed_, reduced_;
  int64_t untimed_ = 0;  // number of steps
  DataParallelFigures figures_;
};

}  // namespace baton::dist

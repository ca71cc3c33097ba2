// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/stream.h"

namespace baton::dist {

// Where the time of a step goes, and what travels. On a GPU it is the time of
// the last step that has ended when they are asked for, as if all since had
// taken as long. Plain data.
struct DataParallelFigures {
  int64_t steps = 0;
  double backward_s = 0;  // of all steps, until its own gradients are there
  double waited_s = 0;    // after that, until those of all are reduced
  int64_t bytes = 0;      // of gradients that were reduced
};

// Where the time of steps goes, of those too that are replayed. On a GPU it is
// what its events say. Thread-compatible.
class StepClock {
 public:
  explicit StepClock(Device device)
      : on_gpu_(device.is_cuda()), computed_(device), reduced_(device) {}

  // Times on the GPU; each replay takes them anew.
  void Computed(const Stream& stream) { computed_.RecordTime(stream); }
  void Reduced(const Stream& stream) { reduced_.RecordTime(stream); }
  // A step of the host's, or of a GPU, where the times are those of its events.
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
  int64_t untimed_ = 0;  // steps
  DataParallelFigures figures_;
};

}  // namespace baton::dist

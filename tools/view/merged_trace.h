// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock_reading.h"
#include "rpc/tracer.h"
#include "rpc/worker.h"

// One trace of what several workers did, each by its own clock.
namespace baton::tools {

struct ClockOffset {
  int64_t ahead_ns = 0;   // how far the other clock is ahead of ours
  int64_t within_ns = 0;  // the error is at most this
};

// From the fastest reading. Zero for none.
ClockOffset OffsetFrom(const std::vector<ClockReading>& readings);

struct WorkerTrace {
  rpc::WorkerInfo worker = {};
  rpc::TraceLog log = {};
  ClockOffset clock = {};
};

// Moves offsets until no message arrives before it was sent, which the estimate
// alone cannot tell where messages are faster than it is precise. Leaves those
// alone that agree with all messages.
void CorrectByMessages(std::vector<WorkerTrace>& traces);

// For Perfetto and chrome://tracing, from corrected traces: a process for each
// worker, with the calls that it made and served, spans on their tracks, and
// one for messages of 4 kB and more on their way; arrows from each call to
// where it was served, and back.
std::string MergedTrace(const std::vector<WorkerTrace>& traces);

}  // namespace baton::tools

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock_reading.h"
#include "rpc/tracer.h"
#include "rpc/worker.h"

// Merges the traces of several workers, each by its own clock, into one.
namespace baton::tools {

struct ClockOffset {
  int64_t ahead_ns = 0;   // how far the other clock is ahead of ours
  int64_t within_ns = 0;  // the error is at most this
};

// Uses the fastest reading. Returns zeros if there are none.
ClockOffset OffsetFrom(const std::vector<ClockReading>& readings);

struct WorkerTrace {
  rpc::WorkerInfo worker = {};
  rpc::TraceLog log = {};
  ClockOffset clock = {};
};

// Moves offsets until no message arrives before it was sent: where messages are
// faster than the offsets are precise, the estimates alone can contradict them.
// Does not change offsets that agree with all messages.
void CorrectByMessages(std::vector<WorkerTrace>& traces);

// Returns a trace for Perfetto and chrome://tracing, from corrected traces.
// Each worker is a process with the calls that it made and served and the spans
// of its tracks. One more process has messages of 4 kB and more on their way.
// Arrows lead from each call to where it was served, and back.
std::string MergedTrace(const std::vector<WorkerTrace>& traces);

}  // namespace baton::tools

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace baton::dist {
namespace {

using Span = StepTrace::Span;

// Returns how much of [begin, end) lies within computing spans.
double Covered(double begin, double end, std::vector<Span> compute) {
  std::sort(compute.begin(), compute.end(), [](const Span& a, const Span& b) {
    return a.begin_ms < b.begin_ms;
  });
  double covered = 0;
  for (const Span& span : compute) {
    const double from = std::max(begin, span.begin_ms);
    const double to = std::min(end, span.end_ms);
    if (to <= from) continue;
    covered += to - from;
    begin = to;  // overlapping spans of other tracks count once
  }
  return covered;
}

// The milliseconds of each instruction, in the order of the spans.
struct InstructionTime {
  Instruction instruction;
  double ms = 0;
};
std::vector<InstructionTime> InstructionTimes(const std::vector<Span>& spans) {
  std::vector<InstructionTime> times;
  for (const Span& span : spans) {
    if (!span.instruction) continue;
    // A BW has two spans.
    if (times.empty() || !(times.back().instruction == *span.instruction))
      times.push_back({*span.instruction});
    times.back().ms += span.end_ms - span.begin_ms;
  }
  return times;
}

}  // namespace

StepTrace::StepTrace(const std::vector<Device>& devices) : devices_(devices) {
  Begin();
}

void StepTrace::Begin() {
  for (Device device : devices_) Synchronize(device);
  BeginInOrder();
}

void StepTrace::BeginInOrder() {
  origin_ns_ = rpc::Tracer::Now();
  for (Device device : devices_) {
    Event origin(device);
    origin.Record(CurrentStream(device));
    origins_.insert_or_assign(device.ToString(), std::move(origin));
  }
}

void StepTrace::Time(Span span, const Stream& stream,
                     absl::FunctionRef<void()> work) {
  Timed timed = {.span = std::move(span),
                 .device = stream.device(),
                 .begin = Event(stream.device()),
                 .end = Event(stream.device())};
  timed.begin.RecordTime(stream);
  work();
  timed.end.RecordTime(stream);
  timed_.push_back(std::move(timed));
}

std::vector<Span> StepTrace::Spans() const {
  for (Device device : devices_) Synchronize(device);
  std::vector<Span> spans;
  for (const Timed& timed : timed_) {
    const Event& origin = origins_.at(timed.device.ToString());
    spans.push_back(timed.span);
    spans.back().begin_ms = timed.begin.MillisecondsSince(origin);
    spans.back().end_ms = timed.end.MillisecondsSince(origin);
  }
  return spans;
}

rpc::TraceLog StepTrace::Log() const {
  const auto at = [&](double ms) {
    return origin_ns_ + std::llround(1e6 * ms);
  };
  rpc::TraceLog log;
  for (const Span& span : Spans()) {
    rpc::TraceEvent& event = log.events.emplace_back();
    event.name = span.name;
    event.peer = span.track;
    event.begin_ns = at(span.begin_ms);
    event.end_ns = at(span.end_ms);
  }
  return log;
}

double OverlappedShare(const std::vector<Span>& spans) {
  std::vector<Span> compute;
  for (const Span& span : spans) {
    if (span.kind == StepTrace::Kind::kCompute) compute.push_back(span);
  }
  double copied = 0, overlapped = 0;
  for (const Span& span : spans) {
    if (span.kind != StepTrace::Kind::kCopy) continue;
    copied += span.end_ms - span.begin_ms;
    overlapped += Covered(span.begin_ms, span.end_ms, compute);
  }
  return copied > 0 ? overlapped / copied : 0;
}

StepTimes TimesOf(const std::vector<Span>& spans) {
  StepTimes times;
  std::vector<Span> compute;
  double end_ms = 0;
  for (const Span& span : spans) {
    if (!span.instruction) continue;
    compute.push_back(span);
    end_ms = std::max(end_ms, span.end_ms);
  }
  for (const auto& [instruction, ms] : InstructionTimes(compute))
    times.instructions.push_back(1e-3 * ms);
  times.busy = 1e-3 * Covered(0, end_ms, std::move(compute));
  for (const Span& span : spans) {
    if (span.link)
      times.copies.push_back(
          {*span.link, 1e-3 * (span.end_ms - span.begin_ms)});
  }
  times.until_end = 1e-3 * end_ms;
  return times;
}

std::vector<StageCosts> CostsOf(const std::vector<Span>& spans, size_t stages,
                                const std::vector<double>& sizes) {
  CostMeter meter(stages);
  for (const auto& [instruction, ms] : InstructionTimes(spans)) {
    meter.Add(instruction, sizes[static_cast<size_t>(instruction.micro_batch)],
              ms);
  }
  return meter.Mean();
}

std::optional<double> BubbleOf(const std::vector<GroupReport>& reports) {
  double end = 0, busy = 0;
  for (const GroupReport& report : reports) {
    if (!report.times) return std::nullopt;
    end = std::max(end, report.times->until_end);
    busy += report.times->busy;
  }
  return 1 - busy / (end * static_cast<double>(reports.size()));
}

double BubbleOf(const std::vector<Span>& spans,
                const std::vector<int>& worker_of_stage) {
  std::map<int, std::vector<Span>> of_worker;
  double begin = std::numeric_limits<double>::infinity(), end = -begin;
  for (int worker : worker_of_stage) of_worker[worker];
  for (const Span& span : spans) {
    if (!span.instruction) continue;
    begin = std::min(begin, span.begin_ms);
    end = std::max(end, span.end_ms);
    const auto stage = static_cast<size_t>(span.instruction->stage);
    of_worker[worker_of_stage[stage]].push_back(span);
  }
  double busy = 0;
  for (const auto& [worker, own] : of_worker) busy += Covered(begin, end, own);
  return 1 - busy / ((end - begin) * static_cast<double>(of_worker.size()));
}

}  // namespace baton::dist

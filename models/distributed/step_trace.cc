// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"

namespace baton::dist {
namespace {

using Span = StepTrace::Span;

void SortByBegin(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin_ms < b.begin_ms;
  });
}

// Returns how much of [begin, end) lies within computing spans.
double Covered(double begin, double end, std::vector<Span> compute) {
  SortByBegin(compute);
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

// Returns the milliseconds of each span. Of a time in which n of them run, an
// n-th counts for each.
std::vector<double> SharesOf(const std::vector<Span>& spans) {
  std::vector<double> turns;  // when a span begins or ends
  for (const Span& span : spans)
    turns.insert(turns.end(), {span.begin_ms, span.end_ms});
  std::sort(turns.begin(), turns.end());
  std::vector<double> shares(spans.size(), 0);
  for (size_t turn = 1; turn < turns.size(); ++turn) {
    const double from = turns[turn - 1], to = turns[turn];
    const auto runs = [&](const Span& span) {
      return span.begin_ms <= from && span.end_ms >= to;
    };
    const auto running = std::count_if(spans.begin(), spans.end(), runs);
    for (size_t i = 0; i < spans.size(); ++i)
      if (runs(spans[i]))
        shares[i] += (to - from) / static_cast<double>(running);
  }
  return shares;
}

// The times of one device's instruction in milliseconds.
struct TimedParts {
  Instruction instruction;
  InstructionTime ms = {};
};
// Returns the times of one device's instructions, in the order of its spans.
std::vector<TimedParts> PartsOf(const std::vector<Span>& spans) {
  std::vector<TimedParts> parts;
  const std::vector<double> shares = SharesOf(spans);
  for (size_t i = 0; i < spans.size(); ++i) {
    // The second span of a BW follows the sending.
    if (parts.empty() || !(parts.back().instruction == *spans[i].instruction)) {
      parts.push_back({*spans[i].instruction});
    } else {
      parts.back().ms.tail += shares[i];
    }
    parts.back().ms.all += shares[i];
  }
  return parts;
}

// Returns the shortest time between two of the spans; 0 if there is none.
double GapOf(std::vector<Span> spans) {
  SortByBegin(spans);
  double shortest = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < spans.size(); ++i) {
    const double gap = spans[i].begin_ms - spans[i - 1].end_ms;
    if (gap >= 0) shortest = std::min(shortest, gap);
  }
  return std::isinf(shortest) ? 0 : shortest;
}

// Returns the times of all devices of all workers; empty unless all reports
// have them.
std::vector<StepTimes> TimesOf(const std::vector<GroupReport>& reports) {
  std::vector<StepTimes> all;
  for (const GroupReport& report : reports) {
    if (report.times.empty()) return {};
    all.insert(all.end(), report.times.begin(), report.times.end());
  }
  return all;
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
  // The times of several devices must begin together.
  const Stream first = CurrentStream(devices_.front());
  for (Device device : devices_) first.WaitFor(CurrentStream(device));
  for (Device device : devices_) CurrentStream(device).WaitFor(first);
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

std::vector<StepTimes> StepTrace::Times() const {
  const std::vector<Span> all = Spans();
  std::vector<StepTimes> times;
  for (Device device : devices_) {
    std::vector<Span> there;
    for (size_t i = 0; i < all.size(); ++i)
      if (timed_[i].device == device) there.push_back(all[i]);
    times.push_back(TimesOf(there));
  }
  return times;
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

CopiesTime CopiesOf(const rpc::TraceLog& log) {
  std::vector<Span> compute, copies;
  for (const rpc::TraceEvent& event : log.events) {
    if (event.kind != rpc::TraceEvent::Kind::kSpan) continue;
    const Span span = {.begin_ms = 1e-6 * static_cast<double>(event.begin_ns),
                       .end_ms = 1e-6 * static_cast<double>(event.end_ns)};
    if (ParseInstruction(event.name)) compute.push_back(span);
    if (absl::StartsWith(event.name, StepTrace::kCopyOf))
      copies.push_back(span);
  }
  CopiesTime found;
  for (const Span& copy : copies) {
    found.ms += copy.end_ms - copy.begin_ms;
    found.overlapped += Covered(copy.begin_ms, copy.end_ms, compute);
  }
  if (found.ms > 0) found.overlapped /= found.ms;
  return found;
}

StepTimes TimesOf(const std::vector<Span>& spans) {
  StepTimes times;
  std::vector<Span> compute;
  double begin_ms = std::numeric_limits<double>::infinity(), end_ms = 0;
  for (const Span& span : spans) {
    if (span.link)
      times.copies.push_back(
          {*span.link, 1e-3 * (span.end_ms - span.begin_ms)});
    if (span.kind == StepTrace::Kind::kReduce)
      times.awaited += 1e-3 * (span.end_ms - span.begin_ms);
    if (!span.instruction) continue;
    compute.push_back(span);
    begin_ms = std::min(begin_ms, span.begin_ms);
    end_ms = std::max(end_ms, span.end_ms);
  }
  if (compute.empty()) return times;
  for (const TimedParts& part : PartsOf(compute))
    times.instructions.push_back({1e-3 * part.ms.all, 1e-3 * part.ms.tail});
  times.gap = 1e-3 * GapOf(compute);
  times.busy = 1e-3 * Covered(0, end_ms, std::move(compute));
  times.until_begin = 1e-3 * begin_ms;
  times.until_end = 1e-3 * end_ms;
  return times;
}

std::optional<double> BubbleOf(const std::vector<GroupReport>& reports) {
  const std::vector<StepTimes> all = TimesOf(reports);
  if (all.empty()) return std::nullopt;
  double end = 0, busy = 0;
  for (const StepTimes& times : all) {
    end = std::max(end, times.until_end);
    busy += times.busy;
  }
  return 1 - busy / (end * static_cast<double>(all.size()));
}

std::optional<double> AwaitedOf(const std::vector<GroupReport>& reports) {
  const std::vector<StepTimes> all = TimesOf(reports);
  if (all.empty()) return std::nullopt;
  double end = 0, awaited = 0;
  for (const StepTimes& times : all) {
    end = std::max(end, times.until_end + times.awaited);
    awaited += times.awaited;
  }
  return awaited / (end * static_cast<double>(all.size()));
}

}  // namespace baton::dist

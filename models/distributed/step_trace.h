// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/stream.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/workload.h"
#include "rpc/tracer.h"

namespace baton::dist {

// Records when the instructions of a step, and the copies between its devices,
// began and ended on the devices, in milliseconds since the trace began. The
// clocks of different GPUs are aligned to within some microseconds. Confined to
// one thread.
class StepTrace {
 public:
  // kWait: for values of another stage; kReduce: for gradients of replicas.
  enum class Kind { kCompute, kCopy, kWait, kReduce };
  static constexpr char kCopyOf[] = "copy ";  // begins the names of copies
  struct Span {
    std::string name = {};
    Kind kind = Kind::kCompute;
    std::string track = {};  // "stage 1", "cuda:0 to cuda:1"
    double begin_ms = 0;
    double end_ms = 0;
    std::optional<Instruction> instruction = {};  // the one that the span times
    std::optional<LinkEnds> link = {};  // to another device, used by the copy
  };

  explicit StepTrace(const std::vector<Device>& devices);
  // Waits until the devices are idle and begins the trace anew; the constructor
  // does so, too. If the work is timed within a recorded graph (core/graph.h),
  // call this before a replay.
  void Begin();
  // Begins the trace anew in the order of the current streams, without waiting.
  void BeginInOrder();

  // Calls `work`, which enqueues work on `stream`. The span begins when the
  // stream reaches that work and everything it waits for by then is done.
  void Time(Span span, const Stream& stream, absl::FunctionRef<void()> work);

  // Waits for the timed work.
  std::vector<Span> Spans() const;
  // Waits for the timed work. Returns what a worker reports of its program,
  // which began when the trace did: the times of each of the trace's devices.
  std::vector<StepTimes> Times() const;
  // As Spans, but by the host's clock, with a track for each name.
  rpc::TraceLog Log() const;

 private:
  struct Timed {
    Span span;
    Device device;
    Event begin, end;
  };
  const std::vector<Device> devices_;
  std::map<std::string, Event> origins_;  // by device
  int64_t origin_ns_ = 0;  // the host's clock when the trace began
  std::vector<Timed> timed_;
};

// The copies of a step, and the share of their time during which some device
// computes.
struct CopiesTime {
  double ms = 0;
  double overlapped = 0;
};
// Returns those of a log, which may also have other events.
CopiesTime CopiesOf(const rpc::TraceLog& log);

// Returns the times of one device, whose spans these are.
StepTimes TimesOf(const std::vector<StepTrace::Span>& spans);

// The mean device's idle share of the time until the last worker ends; nullopt
// unless all reports have times.
std::optional<double> BubbleOf(const std::vector<GroupReport>& reports);
// The share of the time until the last worker has all gradients of its replicas
// in which the mean device waits for those of others after its last
// instruction; nullopt unless all reports have times.
std::optional<double> AwaitedOf(const std::vector<GroupReport>& reports);

}  // namespace baton::dist

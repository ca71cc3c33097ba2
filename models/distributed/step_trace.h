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

// When the instructions of a step, and the copies between its devices, began
// and ended there, in milliseconds from the trace's beginning. The clocks of
// GPUs are set by each other to some microseconds. Confined to one thread.
class StepTrace {
 public:
  enum class Kind { kCompute, kCopy };
  struct Span {
    std::string name = {};
    Kind kind = Kind::kCompute;
    std::string track = {};  // "stage 1", "cuda:0 to cuda:1"
    double begin_ms = 0;
    double end_ms = 0;
    std::optional<Instruction> instruction = {};  // that it times
    std::optional<LinkEnds> link =
        {};  // of another worker, that it copies over
  };

  explicit StepTrace(const std::vector<Device>& devices);
  // Waits until the devices are idle: times count from here, as from the
  // constructor. For work that is timed within a recorded graph
  // (core/graph.h), to be called before a replay.
  void Begin();
  // The same in the order of the current streams, for which nobody waits.
  void BeginInOrder();

  // Calls `work`, which gives work to `stream`; the span begins when the stream
  // has come there and what it waits for by then is done.
  void Time(Span span, const Stream& stream, absl::FunctionRef<void()> work);

  // Waits for the timed work.
  std::vector<Span> Spans() const;
  // Likewise, by the host's clock, with a track for each name.
  rpc::TraceLog Log() const;

 private:
  struct Timed {
    Span span;
    Device device;
    Event begin, end;
  };
  const std::vector<Device> devices_;
  std::map<std::string, Event> origins_;  // by device
  int64_t origin_ns_ = 0;                 // the host's clock then
  std::vector<Timed> timed_;
};

// Of the time of copies, the share in which something computes.
double OverlappedShare(const std::vector<StepTrace::Span>& spans);

// What one worker's program, begun at the trace's beginning, has to report.
StepTimes TimesOf(const std::vector<StepTrace::Span>& spans);

// Mean milliseconds of the instructions of each stage, for a micro-batch of
// size 1 where they are of these sizes; 0 where none was timed.
std::vector<StageCosts> CostsOf(const std::vector<StepTrace::Span>& spans,
                                size_t stages,
                                const std::vector<double>& sizes);

// Of the time until the last worker's end, the share in which a mean one works
// on nothing; nullopt unless all have times.
std::optional<double> BubbleOf(const std::vector<GroupReport>& reports);
// Of the time from the first instruction's begin to the last one's end, the
// share in which a mean worker works on none of its stages.
double BubbleOf(const std::vector<StepTrace::Span>& spans,
                const std::vector<int>& worker_of_stage);

}  // namespace baton::dist

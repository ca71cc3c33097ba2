// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/algorithm/container.h"
#include "core/graph.h"
#include "core/status.h"
#include "models/distributed/device_pipeline.h"

namespace baton::dist {

Workload DevicePipeline::WorkFor(const std::vector<RowRange>& rows) const {
  Workload work;
  const std::vector<Device> all = devices();
  for (const DeviceStage& stage : stages_)
    work.worker_of_stage.push_back(
        static_cast<int>(absl::c_find(all, stage.device) - all.begin()));
  work.sizes = GroupSizes(rows, static_cast<size_t>(options_.at_once));
  work.micro_batches = static_cast<int>(work.sizes.size());
  work.costs = costs_;
  return work;
}

Schedule DevicePipeline::ScheduleFor(const Workload& work) const {
  absl::StatusOr<Schedule> schedule = MakeSchedule(options_.schedule, work);
  if (!schedule.ok()) throw Error(schedule.status());
  return *std::move(schedule);
}

DevicePipeline::Timing DevicePipeline::Tune(const Tensor& inputs,
                                            const Tensor& targets) {
  std::vector<std::pair<Tensor, Tensor>> kept;  // buffers and what they held
  for (const DeviceStage& stage : stages_) {
    for (const auto& [name, buffer] : stage.module->NamedBuffers())
      kept.emplace_back(buffer, buffer.Clone());
  }
  const Tensor placed = inputs.To(stages_.front().device);
  const Tensor wanted = targets.To(stages_.back().device);
  for (int i = 0; i < 2; ++i) Step(placed, wanted);  // algorithms are chosen
  const std::vector<RowRange> rows = RowsOf(placed.dim(0));
  if (options_.schedule.name == "auto") {
    costs_ =
        CostsOf(TimedStep(placed, wanted), stages_.size(), GroupSizes(rows));
  }
  Workload work = WorkFor(rows);
  Timing timing;
  timing.schedule = ScheduleFor(work);
  const auto spans = TimedStep(placed, wanted);
  timing.bubble = BubbleOf(spans, work.worker_of_stage);
  work.costs = CostsOf(spans, stages_.size(), GroupSizes(rows));
  absl::StatusOr<Simulation> predicted = Simulate(timing.schedule, work);
  if (!predicted.ok()) throw Error(predicted.status());
  timing.predicted = *std::move(predicted);
  for (const auto& [buffer, value] : kept) buffer.CopyFrom(value);
  return timing;
}

std::vector<DeviceTrace::Span> DevicePipeline::TimedStep(
    const Tensor& inputs, const Tensor& targets) {
  DeviceTrace trace(devices());
  const auto timed = [&] { Step(inputs, targets, {.trace = &trace}); };
  if (lanes_.size() == devices().size()) {  // no CPU among them
    const Graph graph = Graph::Record(devices(), timed);
    for (int i = 0; i < 2; ++i) {
      trace.Begin();
      graph.Replay();
    }
  } else {
    timed();
  }
  return trace.Spans();
}

}  // namespace baton::dist

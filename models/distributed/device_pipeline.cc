// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"
#include "models/distributed/local_links.h"

namespace baton::dist {
namespace {

constexpr char kOp[] = "device_pipeline";

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw Error(value.status());
  return *std::move(value);
}

}  // namespace

DevicePipeline::DevicePipeline(std::vector<DeviceStage> stages,
                               const DevicePipelineOptions& options)
    : stages_(std::move(stages)), options_(options) {
  Require(!stages_.empty(), kOp, "no stages");
  Require(options.split_size >= 0, kOp,
          "split_size is negative: ", options.split_size);
  Require(options.own_loss != nullptr || options.loss == Loss::kCrossEntropy ||
              options.loss == Loss::kMse,
          kOp, "training needs a loss: cross-entropy, MSE or one's own");
  if (const absl::Status status = CheckRoutes(options.routes, num_stages());
      !status.ok())
    throw Error(status);
  Require(IsFloating(options.dtype), kOp, "expected a floating dtype, got ",
          Name(options.dtype));
  Require(options.at_once > 0, kOp,
          "at_once is not positive: ", options.at_once);
  Require(options.micro_batches.empty() || options.split_size == 0, kOp,
          "takes split_size or micro_batches");
  // Throws now if the schedule is impossible for these stages.
  const auto& given = options.schedule.given;
  ScheduleFor(WorkFor(SplitRows(
      (given ? given->micro_batches() : 1) * int64_t{options.at_once}, 1)));
  for (DeviceStage& stage : stages_) {
    Require(stage.module != nullptr, kOp, "a stage has no module");
    if (options.dtype != DType::kF32)
      stage.module->LowerPrecision(options.dtype);
    // A loss computes in f32, whatever the dtype of the stages.
    if (options.own_loss != nullptr && &stage == &stages_.back())
      stage.module = std::make_shared<nn::WithLoss>(std::move(stage.module),
                                                    options.own_loss);
    stage.module->To(stage.device);
    const int gpu = stage.device.index();
    if (stage.device.is_cuda() && streams_.count(gpu) == 0)
      streams_.emplace(gpu, StageStreams::Make(stage.device, options.at_once));
  }
}

Tensor DevicePipeline::Step(const BatchInputs& inputs, const Tensor& targets,
                            const StepOptions& options) {
  const std::vector<RowRange> rows = RowsOf(OrThrow(inputs.Rows()));
  const Loss loss_kind =
      options_.own_loss == nullptr ? options_.loss : Loss::kOwn;
  for (Variable& parameter : Parameters()) parameter.ZeroGrad();
  const Results results = Run({.training = true, .loss = loss_kind}, rows,
                              {.inputs = Placed(inputs),
                               .targets = targets.To(stages_.back().device),
                               .loss_scale = options.loss_scale},
                              options.trace);
  if (rows.size() == 1) return results.losses.front();
  Tensor loss = results.losses.front().Clone();
  for (size_t m = 1; m < rows.size(); ++m)
    ops::AddInto(loss, results.losses[m]);
  return loss;
}

Values DevicePipeline::Evaluate(const BatchInputs& inputs) {
  const std::vector<RowRange> rows = SplitEvaluated(
      OrThrow(inputs.Rows()), options_.split_size, options_.micro_batches);
  return Joined(Run({}, rows, {.inputs = Placed(inputs)}, nullptr).outputs);
}

Values DevicePipeline::Placed(const BatchInputs& inputs) const {
  Values values = inputs.values();
  std::set<size_t> placed;
  const StageWiring wiring(kBatch, num_stages(), options_.routes);
  for (int stage : wiring.targets()) {
    for (size_t i : wiring.OutputsTo(stage, values.size())) {
      if (placed.insert(i).second)
        values[i] = values[i].To(stages_[static_cast<size_t>(stage)].device);
    }
  }
  return values;
}

DevicePipeline::Results DevicePipeline::Run(StepPlan plan,
                                            const std::vector<RowRange>& rows,
                                            const ProgramRun::Batch& batch,
                                            StepTrace* trace) const {
  plan.program = ProgramFor(plan.training, rows);
  plan.rows = rows.back().end;
  for (const RowRange& part : rows) plan.micro_batches.push_back(part.size());
  plan.at_once = options_.at_once;
  plan.overlap = options_.overlap;
  std::map<int, LocalLinks> links;  // must not move: LocalLinks refer to each
                                    // other
  std::vector<ProgramRun::RunStage> stages;
  for (const DeviceStage& stage : stages_) {
    const auto others = streams_.find(stage.device.index());
    const StageStreams streams =
        others == streams_.end() || stage.device.is_cpu()
            ? StageStreams::Current(stage.device)
            : others->second.For(plan);
    const int index = static_cast<int>(links.size());
    const auto link =
        links.try_emplace(index, index, streams, links,
                          LocalLinks::Options{options_.copy_streams, trace});
    stages.push_back({*stage.module,
                      {.index = index,
                       .count = num_stages(),
                       .deferred_batch_norm = options_.deferred_batch_norm,
                       .routes = options_.routes},
                      streams,
                      link.first->second,
                      options_.own_loss.get()});
  }
  ProgramRun run(plan, batch, stages, trace);
  if (absl::Status status = run.Run(); !status.ok()) throw Error(status);
  run.gradients().Leave();
  return {run.last()->losses(), run.last()->outputs()};
}

Program DevicePipeline::ProgramFor(bool training,
                                   const std::vector<RowRange>& rows) const {
  const Workload work = WorkFor(rows);
  const Schedule schedule =
      training ? ScheduleFor(work) : OrThrow(MakeForwards(work));
  // A value sent by one device is taken before the same device sends again.
  Program program;
  for (const TimedInstruction& timed : OrThrow(Simulate(schedule, work)).order)
    program.push_back(timed.instruction);
  return Ungrouped(program, options_.at_once, static_cast<int>(rows.size()));
}

std::vector<RowRange> DevicePipeline::RowsOf(int64_t batch) const {
  return SplitRows(batch, options_.split_size, options_.micro_batches);
}

int64_t DevicePipeline::MicroBatches(int64_t rows) const {
  return static_cast<int64_t>(RowsOf(rows).size());
}

std::vector<Variable> DevicePipeline::Parameters() const {
  std::vector<Variable> all;
  for (const DeviceStage& stage : stages_) {
    for (Variable& parameter : stage.module->Parameters())
      all.push_back(std::move(parameter));
  }
  return all;
}

std::vector<Device> DevicePipeline::devices() const {
  std::vector<Device> all;
  for (const DeviceStage& stage : stages_) {
    if (!absl::c_linear_search(all, stage.device)) all.push_back(stage.device);
  }
  return all;
}

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
  return OrThrow(MakeSchedule(options_.schedule, work));
}

PipelineTiming DevicePipeline::Tune(const BatchInputs& inputs,
                                    const Tensor& targets) {
  std::vector<std::pair<Tensor, Tensor>> kept;  // buffers and their values
  for (const DeviceStage& stage : stages_) {
    for (const auto& [name, buffer] : stage.module->NamedBuffers())
      kept.emplace_back(buffer, buffer.Clone());
  }
  const std::vector<RowRange> rows = RowsOf(OrThrow(inputs.Rows()));
  const BatchInputs placed = Placed(inputs);
  const Tensor wanted = targets.To(stages_.back().device);
  // Algorithms are chosen in these steps.
  for (int i = 0; i < 2; ++i) Step(placed, wanted);
  if (options_.schedule.name == "auto") {
    costs_ = MeterOf(TimedStep(placed, wanted), WorkFor(rows).worker_of_stage,
                     GroupSizes(rows))
                 .Mean();
  }
  Workload work = WorkFor(rows);
  PipelineTiming timing;
  timing.schedule = ScheduleFor(work);
  const auto spans = TimedStep(placed, wanted);
  timing.bubble = BubbleOf(spans, work.worker_of_stage);
  MeterOf(spans, work.worker_of_stage, GroupSizes(rows)).Describe(work);
  timing.predicted = OrThrow(Simulate(timing.schedule, work));
  for (const auto& [buffer, value] : kept) buffer.CopyFrom(value);
  return timing;
}

std::vector<StepTrace::Span> DevicePipeline::TimedStep(
    const BatchInputs& inputs, const Tensor& targets) {
  StepTrace trace(devices());
  const auto timed = [&] { Step(inputs, targets, {.trace = &trace}); };
  if (streams_.size() == devices().size()) {  // no device is the CPU
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

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "models/nn/loss.h"
#include "models/nn/scopes.h"

namespace baton::dist {
namespace {

constexpr char kOp[] = "device_pipeline";

void RequireRows(const Tensor& inputs) {
  Require(inputs.defined() && inputs.rank() > 0 && inputs.dim(0) > 0, kOp,
          "expected inputs with rows");
}

Tensor Rows(const Tensor& x, const RowRange& rows) {
  return rows.size() == x.dim(0) ? x : x.Slice(0, rows.begin, rows.end);
}

}  // namespace

// One step; gone with it.
class DevicePipeline::Run {
 public:
  Run(const DevicePipeline& pipeline, const Tensor& inputs,
      const Tensor& targets, std::vector<RowRange> rows,
      const StepOptions& options)
      : stages_(pipeline.stages_),
        options_(pipeline.options_),
        work_(pipeline.WorkFor(rows)),
        schedule_(pipeline.ScheduleFor(work_)),
        inputs_(inputs),
        targets_(targets),
        rows_(std::move(rows)),
        loss_scale_(options.loss_scale),
        trace_(options.trace),
        streams_(DevicesOf(stages_), pipeline.lanes_,
                 {.several = options_.at_once > 1,
                  .overlap = options_.overlap,
                  .weights = LeavesWeights(schedule_)}),
        in_flight_(stages_.size(), std::vector<InFlight>(rows_.size())),
        sums_(stages_.size()),
        postponed_(stages_.size()) {}

  Tensor Train() {
    streams_.Fork();
    const size_t at_once = static_cast<size_t>(options_.at_once);
    // One thread gives all devices their work, as it is expected to begin: what
    // one sends another takes before the first sends again.
    const absl::StatusOr<Simulation> expected = Simulate(schedule_, work_);
    if (!expected.ok()) throw Error(expected.status());
    for (const TimedInstruction& timed : expected->order) {
      const auto [op, stage, group] = timed.instruction;
      const size_t first = static_cast<size_t>(group) * at_once;
      const size_t end = std::min(first + at_once, rows_.size());
      for (size_t m = first; m < end; ++m)
        Do(op, static_cast<size_t>(stage), m);
    }
    streams_.Join();
    for (GradientSums& sums : sums_) sums.Leave();
    for (nn::PostponedStatistics& postponed : postponed_) postponed.Apply();
    return Loss();
  }

 private:
  void Do(StageOp op, size_t s, size_t m) {
    switch (op) {
      case StageOp::kForward:
        return Forward(s, m);
      case StageOp::kInputGrad:
        return Backward(op, s, m);
      case StageOp::kWeightGrad:
        return Weights(op, s, m);
      case StageOp::kBackward:
        Backward(op, s, m);
        return Weights(op, s, m);
    }
  }

  // To instructions of their own.
  static bool LeavesWeights(const Schedule& schedule) {
    return absl::c_any_of(schedule.workers, [](const Program& program) {
      return absl::c_any_of(program, [](const Instruction& step) {
        return step.op == StageOp::kInputGrad;
      });
    });
  }
  bool IsLast(size_t stage) const { return stage + 1 == stages_.size(); }

  static std::vector<Device> DevicesOf(const std::vector<DeviceStage>& stages) {
    std::vector<Device> devices;
    for (const DeviceStage& stage : stages) devices.push_back(stage.device);
    return devices;
  }

  void Forward(size_t s, size_t m) {
    const StreamScope scope(streams_.Forward(s, m));
    InFlight& here = in_flight_[s][m];
    const Tensor input =
        s == 0 ? Rows(inputs_, rows_[m]) : std::move(here.received);
    Compute(StageOp::kForward, s, m, input, [&] {
      std::optional<nn::PostponedStatistics::Scope> later;
      if (streams_.several(s)) later.emplace(postponed_[s]);
      here.input = Variable(input, s > 0);
      here.output = stages_[s].module->Forward(here.input);
      if (IsLast(s)) here.output = WeightedLoss(here.output, m);
    });
    if (IsLast(s)) {
      here.gradient = loss_scale_;
      losses_.push_back(here.output.tensor());
    } else {
      in_flight_[s + 1][m].received = Send(s, s + 1, m, here.output.tensor());
    }
  }

  void Backward(StageOp op, size_t s, size_t m) {
    const Stream& stream = streams_.Backward(s, m);
    // A forward given after this may run beside it, but not before.
    streams_.Forward(s, m).WaitFor(stream);
    const StreamScope scope(stream);
    InFlight here = std::exchange(in_flight_[s][m], InFlight());
    // A stage that does not use its input gives its predecessor no gradient.
    if (!here.output.requires_grad() ||
        (!IsLast(s) && !here.gradient.defined())) {
      return;
    }
    InFlight& left = in_flight_[s][m];
    Tensor of_input;
    autograd::GraphTask::Options pass;
    pass.sink = [&](const Variable& leaf, const Tensor& gradient) {
      if (leaf.id() == here.input.id()) {
        of_input = gradient;
      } else {
        left.gradients.emplace_back(leaf, gradient);
      }
    };
    if (op == StageOp::kInputGrad) {
      pass.postpone = [&](const Variable& leaf) {
        return leaf.id() != here.input.id();
      };
      pass.later = [&](const Variable& leaf, autograd::LateGradient gradient) {
        left.late.emplace_back(leaf, std::move(gradient));
        // Nobody waits for the first stage's backwards.
        if (s == 0) ComputeLate(left, s, stream);
      };
    }
    Compute(op, s, m, here.gradient, [&] {
      autograd::Backward({here.output}, {here.gradient}, std::move(pass));
    });
    // The stage before waits for it: sent before anything else is given.
    if (of_input.defined())
      in_flight_[s - 1][m].gradient = Send(s, s - 1, m, of_input);
  }

  void Weights(StageOp op, size_t s, size_t m) {
    const Stream& stream = streams_.Backward(s, m);
    InFlight here = std::exchange(in_flight_[s][m], InFlight());
    const Stream beside = Stream::Beside(stream);
    beside.WaitFor(stream);
    const StreamScope scope(beside);
    Compute(op, s, m, Tensor(), [&] {
      ComputeLate(here, s, beside);
      for (const Stream& lane : streams_.Weights(s)) beside.WaitFor(lane);
      sums_[s].Add(std::move(here.gradients), /*last=*/rows_.size() == 1);
    });
  }

  // The gradients left for later, once `stream` has got so far: several at once
  // where there are streams for it, since none needs another.
  void ComputeLate(InFlight& here, size_t s, const Stream& stream) {
    for (auto& [leaf, gradient] : std::exchange(here.late, {})) {
      const std::vector<Stream>& lanes = streams_.Weights(s);
      const Stream lane =
          lanes.empty() ? stream : lanes[next_lane_++ % lanes.size()];
      lane.WaitFor(stream);
      const StreamScope scope(lane);
      here.gradients.emplace_back(leaf, gradient());
      gradient = nullptr;
    }
  }

  // Sums to the mean over the batch whatever the sizes of the micro-batches.
  Variable WeightedLoss(const Variable& output, size_t m) const {
    const Variable logits =
        IsHalf(output.dtype()) ? autograd::Cast(output, DType::kF32) : output;
    const Tensor targets = Rows(targets_, rows_[m]);
    Variable loss = options_.loss == Loss::kMse
                        ? nn::MseLoss(logits, targets)
                        : nn::CrossEntropy(logits, targets);
    if (rows_.size() == 1) return loss;
    return autograd::MulScalar(loss, static_cast<double>(rows_[m].size()) /
                                         static_cast<double>(inputs_.dim(0)));
  }

  Tensor Loss() const {
    if (losses_.size() == 1) return losses_.front();
    Tensor loss = losses_.front().Clone();
    for (size_t m = 1; m < losses_.size(); ++m) ops::AddInto(loss, losses_[m]);
    return loss;
  }

  Tensor Send(size_t from, size_t to, size_t m, const Tensor& value) {
    const Device source = stages_[from].device, target = stages_[to].device;
    if (source == target) return value;
    const Stream lane = Stream::ForCopies(source, target);
    const auto copy = [&] {
      // Memory of the lane's own: that of a computing stream would come with
      // its waits.
      const StreamScope scope(lane);
      if (trace_ == nullptr) return value.To(target);
      lane.WaitFor(CurrentStream(source));
      Tensor arrived;
      trace_->Time(absl::StrCat("copy ", m), DeviceTrace::Kind::kCopy,
                   absl::StrCat(source.ToString(), " to ", target.ToString()),
                   lane, [&] { arrived = value.To(target); });
      return arrived;
    };
    if (options_.copy_streams) return copy();
    const Stream& user = streams_.UserOf(from, to, m);
    return InTurn(lane, {CurrentStream(source), user}, copy);
  }

  // `needed`: what may have come from another device.
  template <typename Work>
  void Compute(StageOp op, size_t s, size_t m, const Tensor& needed,
               const Work& work) {
    if (trace_ == nullptr) return work();
    const Device device = stages_[s].device;
    const Stream stream = CurrentStream(device);
    if (needed.defined() && needed.storage()->use())
      needed.storage()->use()->Read(stream);
    std::string lane = device.ToString();
    if (stream != Stream::Default(device))
      absl::StrAppend(&lane, " stream ", stream.index());
    const Instruction instruction = {op, static_cast<int>(s),
                                     static_cast<int>(m)};
    trace_->Time(ToString(instruction), DeviceTrace::Kind::kCompute, lane,
                 stream, work, instruction);
  }

  const std::vector<DeviceStage>& stages_;
  const DevicePipelineOptions& options_;
  const Workload work_;
  const Schedule schedule_;
  const Tensor inputs_;
  const Tensor targets_;
  const std::vector<RowRange> rows_;
  const Tensor loss_scale_;  // undefined: 1
  DeviceTrace* const trace_;
  const StageStreams streams_;
  size_t next_lane_ = 0;
  std::vector<std::vector<InFlight>> in_flight_;    // [stage][micro-batch]
  std::vector<GradientSums> sums_;                  // of each stage
  std::vector<nn::PostponedStatistics> postponed_;  // likewise
  std::vector<Tensor> losses_;                      // of each micro-batch
};

DevicePipeline::DevicePipeline(std::vector<DeviceStage> stages,
                               const DevicePipelineOptions& options)
    : stages_(std::move(stages)), options_(options) {
  Require(!stages_.empty(), kOp, "no stages");
  Require(options.split_size >= 0, kOp,
          "split_size is negative: ", options.split_size);
  Require(options.loss != Loss::kNone, kOp, "training needs a loss");
  Require(IsFloating(options.dtype), kOp, "expected a floating dtype, got ",
          Name(options.dtype));
  Require(options.at_once > 0, kOp,
          "at_once is not positive: ", options.at_once);
  Require(options.micro_batches.empty() || options.split_size == 0, kOp,
          "takes split_size or micro_batches");
  // Says now what the schedule cannot be.
  const auto& given = options.schedule.given;
  ScheduleFor(WorkFor(SplitRows(
      (given ? given->micro_batches() : 1) * int64_t{options.at_once}, 1)));
  for (const DeviceStage& stage : stages_) {
    Require(stage.module != nullptr, kOp, "a stage has no module");
    if (options.dtype != DType::kF32)
      stage.module->LowerPrecision(options.dtype);
    stage.module->To(stage.device);
    const int gpu = stage.device.index();
    if (stage.device.is_cuda() && lanes_.count(gpu) == 0)
      lanes_.emplace(gpu, MakeLanes(stage.device, options.at_once));
  }
}

Tensor DevicePipeline::Step(const Tensor& inputs, const Tensor& targets,
                            const StepOptions& options) {
  RequireRows(inputs);
  const std::vector<RowRange> rows = RowsOf(inputs.dim(0));
  Require(targets.rank() > 0 && targets.dim(0) == inputs.dim(0), kOp,
          "expected targets of ", inputs.dim(0), " rows, got shape ",
          targets.shape().ToString());
  for (Variable& parameter : Parameters()) parameter.ZeroGrad();
  return Run(*this, Placed(inputs), targets.To(stages_.back().device), rows,
             options)
      .Train();
}

Tensor DevicePipeline::Evaluate(const Tensor& inputs) {
  RequireRows(inputs);
  const NoGrad no_grad;
  std::vector<std::unique_ptr<nn::EvalScope>> evaluating;
  for (const DeviceStage& stage : stages_)
    evaluating.push_back(std::make_unique<nn::EvalScope>(*stage.module));
  const Tensor placed = Placed(inputs);
  std::vector<Tensor> outputs;
  const int64_t most = options_.micro_batches.empty()
                           ? options_.split_size
                           : *absl::c_max_element(options_.micro_batches);
  const int64_t all = placed.dim(0);
  for (const RowRange& rows : SplitRows(all, most > 0 ? most : all)) {
    Tensor value = Rows(placed, rows);
    for (const DeviceStage& stage : stages_)
      value = stage.module->Forward(value.To(stage.device)).tensor();
    outputs.push_back(value);
  }
  return outputs.size() == 1 ? outputs[0] : ops::Cat(outputs, 0);
}

std::vector<RowRange> DevicePipeline::RowsOf(int64_t batch) const {
  if (!options_.micro_batches.empty())
    return SplitRows(batch, options_.micro_batches);
  return SplitRows(batch,
                   options_.split_size > 0 ? options_.split_size : batch);
}

int64_t DevicePipeline::MicroBatches(int64_t rows) const {
  return static_cast<int64_t>(RowsOf(rows).size());
}

Tensor DevicePipeline::Placed(const Tensor& inputs) const {
  const Tensor here = inputs.To(stages_.front().device);
  return IsHalf(options_.dtype) && IsFloating(here.dtype())
             ? here.To(options_.dtype)
             : here;
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

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

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

bool IsLow(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16;
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
        inputs_(inputs),
        targets_(targets),
        rows_(std::move(rows)),
        loss_scale_(options.loss_scale),
        trace_(options.trace),
        streams_(StreamsOf(pipeline)),
        in_flight_(stages_.size(), std::vector<InFlight>(rows_.size())),
        sums_(stages_.size()),
        postponed_(stages_.size()) {}

  Tensor Train() {
    Fork();
    const auto programs = TrainPrograms(
        options_.schedule, static_cast<int>(stages_.size()), micro_batches());
    for (const auto& [stage, instruction] : MergePrograms(programs)) {
      const auto s = static_cast<size_t>(stage);
      const auto m = static_cast<size_t>(instruction.micro_batch);
      instruction.op == StageOp::kForward ? Forward(s, m) : Backward(s, m);
    }
    Join();
    for (GradientSums& sums : sums_) sums.Leave();
    for (nn::PostponedStatistics& postponed : postponed_) postponed.Apply();
    return Loss();
  }

 private:
  int micro_batches() const { return static_cast<int>(rows_.size()); }
  bool IsLast(size_t stage) const { return stage + 1 == stages_.size(); }

  // Of each stage: the current stream, or those that micro-batches take in
  // turn. The current one is not among these: it wrote the parameters, so who
  // reads them would wait for all that it has been given since.
  static std::vector<std::vector<Stream>> StreamsOf(
      const DevicePipeline& pipeline) {
    std::vector<std::vector<Stream>> streams;
    for (const DeviceStage& stage : pipeline.stages_) {
      const auto several = pipeline.streams_.find(stage.device.index());
      if (stage.device.is_cuda() && several != pipeline.streams_.end()) {
        streams.push_back(several->second);
      } else {
        streams.push_back({CurrentStream(stage.device)});
      }
    }
    return streams;
  }
  const Stream& StreamOf(size_t s, size_t m) const {
    return streams_[s][m % streams_[s].size()];
  }
  // Nothing begins before what the current streams have been given, and they go
  // on after all of it. A recording takes the others in by this.
  void Fork() const {
    for (const std::vector<Stream>& streams : streams_) {
      for (const Stream& stream : streams)
        stream.WaitFor(CurrentStream(stream.device()));
    }
  }
  void Join() const {
    for (const std::vector<Stream>& streams : streams_) {
      for (const Stream& stream : streams) {
        CurrentStream(stream.device()).WaitFor(stream);
        CurrentStream(stream.device()).WaitFor(Stream::Beside(stream));
      }
    }
  }

  void Forward(size_t s, size_t m) {
    const StreamScope scope(StreamOf(s, m));
    InFlight& here = in_flight_[s][m];
    const Tensor input =
        s == 0 ? Rows(inputs_, rows_[m]) : std::move(here.received);
    Compute("F", s, m, input, [&] {
      std::optional<nn::PostponedStatistics::Scope> later;
      if (streams_[s].size() > 1) later.emplace(postponed_[s]);
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

  void Backward(size_t s, size_t m) {
    const StreamScope scope(StreamOf(s, m));
    InFlight here = std::move(in_flight_[s][m]);
    // A stage that does not use its input gives its predecessor no gradient.
    if (!here.output.requires_grad() ||
        (!IsLast(s) && !here.gradient.defined())) {
      return;
    }
    LeafGradients gradients;
    Tensor of_input;
    Compute("B", s, m, here.gradient, [&] {
      autograd::Backward({here.output}, {here.gradient}, false,
                         [&](const Variable& leaf, const Tensor& gradient) {
                           if (leaf.id() == here.input.id()) {
                             of_input = gradient;
                           } else {
                             gradients.emplace_back(leaf, gradient);
                           }
                         });
    });
    // The stage before waits for it: sent before anything else is given.
    if (of_input.defined())
      in_flight_[s - 1][m].gradient = Send(s, s - 1, m, of_input);
    here = InFlight();
    // Beside the chain of gradients, where weights' gradients come about.
    const Stream beside = Stream::Beside(StreamOf(s, m));
    beside.WaitFor(StreamOf(s, m));
    const StreamScope sums(beside);
    Compute("+", s, m, Tensor(), [&] {
      sums_[s].Add(std::move(gradients), /*last=*/rows_.size() == 1);
    });
  }

  // Sums to the mean over the batch whatever the sizes of the micro-batches.
  Variable WeightedLoss(const Variable& output, size_t m) const {
    const Variable logits =
        IsLow(output.dtype()) ? autograd::Cast(output, DType::kF32) : output;
    const Tensor targets = Rows(targets_, rows_[m]);
    const Variable loss = options_.loss == Loss::kMse
                              ? nn::MseLoss(logits, targets)
                              : nn::CrossEntropy(logits, targets);
    if (rows_.size() == 1) return loss;
    return autograd::MulScalar(loss, static_cast<double>(rows_[m].size()) /
                                         static_cast<double>(inputs_.dim(0)));
  }

  Tensor Loss() const {
    if (losses_.size() == 1) return losses_.front();
    const Tensor loss = losses_.front().Clone();
    for (size_t m = 1; m < losses_.size(); ++m) ops::AddInto(loss, losses_[m]);
    return loss;
  }

  Tensor Send(size_t from, size_t to, size_t m, const Tensor& value) {
    const Device source = stages_[from].device, target = stages_[to].device;
    if (trace_ == nullptr || source == target) return value.To(target);
    const Stream lane = Stream::ForCopies(source, target);
    lane.WaitFor(CurrentStream(source));
    Tensor arrived;
    trace_->Time(absl::StrCat("copy ", m), DeviceTrace::Kind::kCopy,
                 absl::StrCat(source.ToString(), " to ", target.ToString()),
                 lane, [&] { arrived = value.To(target); });
    return arrived;
  }

  // `needed`: what may have come from another device.
  template <typename Work>
  void Compute(const char* what, size_t s, size_t m, const Tensor& needed,
               const Work& work) {
    if (trace_ == nullptr) return work();
    const Device device = stages_[s].device;
    const Stream stream = CurrentStream(device);
    if (needed.defined() && needed.storage()->use())
      needed.storage()->use()->Read(stream);
    std::string lane = device.ToString();
    if (stream != Stream::Default(device))
      absl::StrAppend(&lane, " stream ", stream.index());
    trace_->Time(absl::StrCat(what, m), DeviceTrace::Kind::kCompute, lane,
                 stream, work);
  }

  const std::vector<DeviceStage>& stages_;
  const DevicePipelineOptions& options_;
  const Tensor inputs_;
  const Tensor targets_;
  const std::vector<RowRange> rows_;
  const Tensor loss_scale_;  // undefined: 1
  DeviceTrace* const trace_;
  const std::vector<std::vector<Stream>> streams_;  // of each stage
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
  for (const DeviceStage& stage : stages_) {
    Require(stage.module != nullptr, kOp, "a stage has no module");
    if (options.dtype != DType::kF32)
      stage.module->LowerPrecision(options.dtype);
    stage.module->To(stage.device);
    if (stage.device.is_cpu()) continue;
    if (options.at_once == 1) continue;
    std::vector<Stream>& streams = streams_[stage.device.index()];
    while (static_cast<int>(streams.size()) < options.at_once)
      streams.push_back(Stream::Next(stage.device));
  }
}

Tensor DevicePipeline::Step(const Tensor& inputs, const Tensor& targets,
                            const StepOptions& options) {
  const std::vector<RowRange> rows = RowsOf(inputs);
  Require(targets.rank() > 0 && targets.dim(0) == inputs.dim(0), kOp,
          "expected targets of ", inputs.dim(0), " rows, got shape ",
          targets.shape().ToString());
  for (Variable& parameter : Parameters()) parameter.ZeroGrad();
  return Run(*this, Placed(inputs), targets.To(stages_.back().device), rows,
             options)
      .Train();
}

Tensor DevicePipeline::Evaluate(const Tensor& inputs) {
  const NoGrad no_grad;
  std::vector<std::unique_ptr<nn::EvalScope>> evaluating;
  for (const DeviceStage& stage : stages_)
    evaluating.push_back(std::make_unique<nn::EvalScope>(*stage.module));
  const Tensor placed = Placed(inputs);
  std::vector<Tensor> outputs;
  for (const RowRange& rows : RowsOf(inputs)) {
    Tensor value = Rows(placed, rows);
    for (const DeviceStage& stage : stages_)
      value = stage.module->Forward(value.To(stage.device)).tensor();
    outputs.push_back(value);
  }
  return outputs.size() == 1 ? outputs[0] : ops::Cat(outputs, 0);
}

std::vector<RowRange> DevicePipeline::RowsOf(const Tensor& inputs) const {
  Require(inputs.defined() && inputs.rank() > 0 && inputs.dim(0) > 0, kOp,
          "expected inputs with rows");
  const int64_t rows = inputs.dim(0);
  return SplitRows(rows, options_.split_size > 0 ? options_.split_size : rows);
}

Tensor DevicePipeline::Placed(const Tensor& inputs) const {
  const Tensor here = inputs.To(stages_.front().device);
  return IsLow(options_.dtype) && IsFloating(here.dtype())
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
    if (std::find(all.begin(), all.end(), stage.device) == all.end())
      all.push_back(stage.device);
  }
  return all;
}

}  // namespace baton::dist

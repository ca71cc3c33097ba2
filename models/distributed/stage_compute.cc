// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_compute.h"

#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/transfer.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "models/nn/loss.h"

namespace baton::dist {

StageCompute::StageCompute(nn::Module& module, const StageSpec& spec,
                           const StepPlan& plan, StageStreams streams,
                           GradientSums& sums, nn::LossModule* own)
    : module_(module),
      device_(module.device()),
      spec_(spec),
      plan_(plan),
      streams_(std::move(streams)),
      sums_(sums),
      own_(plan.loss == Loss::kOwn ? own : nullptr) {
  if (plan_.steps) {
    drawn_from_ = nn::GeneratorStates(module_);
    for (const auto& [name, buffer] : module_.NamedBuffers())
      buffers_.emplace_back(buffer, buffer.Clone());
  }
  if (!plan_.training) evaluating_.emplace(module_);
}

void StageCompute::MoveStatistics() {
  if (spec_.deferred_batch_norm) {
    postponed_.ApplyAsOne();
  } else {
    postponed_.Apply();
  }
}

void StageCompute::Undo() const {
  drawn_from_.Restore();
  for (const auto& [buffer, kept] : buffers_) buffer.CopyFrom(kept);
}

Tensor StageCompute::Forward(int micro_batch, const Tensor& input,
                             const Tensor& targets) {
  Saved saved;
  saved.input = Variable(input, plan_.training && !spec_.is_first());
  saved.targets = targets;
  if (spec_.checkpoint) saved.drawn_from = nn::GeneratorStates(module_);
  std::optional<NoGrad> no_grad;
  if (!plan_.training || spec_.checkpoint) no_grad.emplace();
  std::optional<nn::PostponedStatistics::Scope> later;
  if (streams_.several() || spec_.deferred_batch_norm)
    later.emplace(postponed_);
  Variable result = module_(module_.Placed(saved.input));
  Tensor output = result.tensor();
  if (spec_.is_last()) {
    if (!plan_.training || output.rank() == 2) outputs_.push_back(output);
    if (plan_.loss != Loss::kNone) {
      result = WeightedLoss(result, targets);
      losses_.push_back(result.tensor());
    }
  }
  if (!plan_.training) return output;
  if (!spec_.checkpoint) saved.result = std::move(result);
  saved_[micro_batch] = std::move(saved);
  return output;
}

// Sums to the mean over the batch whatever the sizes of the micro-batches.
Variable StageCompute::WeightedLoss(const Variable& output,
                                    const Tensor& targets) const {
  const Device device = own_ ? own_->device() : output.tensor().device();
  const Tensor wanted = targets.To(device);
  const Variable whole = autograd::To(
      IsHalf(output.dtype()) ? autograd::Cast(output, DType::kF32) : output,
      device);
  const Variable loss = own_ ? own_->Loss(whole, wanted)
                        : plan_.loss == Loss::kCrossEntropy
                            ? nn::CrossEntropy(whole, wanted)
                            : nn::MseLoss(whole, wanted);
  Require(loss.tensor().numel() == 1, "loss", "expected one element, got ",
          loss.shape().ToString());
  if (plan_.micro_batches.size() == 1) return loss;
  return autograd::MulScalar(loss, static_cast<double>(targets.dim(0)) /
                                       static_cast<double>(plan_.rows));
}

Variable StageCompute::Recompute(const Saved& saved) const {
  const nn::RerunScope rerun(module_, saved.drawn_from);
  Variable result = module_(module_.Placed(saved.input));
  return spec_.is_last() ? WeightedLoss(result, saved.targets) : result;
}

Tensor StageCompute::Backward(StageOp op, int micro_batch,
                              const Tensor& gradient) {
  Saved saved = std::move(saved_.extract(micro_batch).mapped());
  Left& left = left_[micro_batch];
  // A stage that does not use its input gives its predecessor no gradient.
  if (!spec_.is_last() && !gradient.defined()) return Tensor();
  if (spec_.checkpoint) saved.result = Recompute(saved);
  if (!saved.result.requires_grad()) return Tensor();
  Tensor of_input;
  autograd::GraphTask::Options pass;
  pass.sink = [&](const Variable& leaf, const Tensor& value) {
    if (leaf.id() == saved.input.id()) {
      of_input = value;
    } else {
      left.gradients.emplace_back(leaf, value);
    }
  };
  if (op == StageOp::kInputGrad) {
    pass.postpone = [&](const Variable& leaf) {
      return leaf.id() != saved.input.id();
    };
    pass.later = [&](const Variable& leaf, autograd::LateGradient value) {
      left.late.emplace_back(leaf, std::move(value));
      // Nobody waits for the first stage's backwards.
      if (spec_.is_first() && !streams_.weights.empty()) ComputeLate(left);
    };
  }
  // The next stage may compute on another device.
  const Tensor here = gradient.defined()
                          ? gradient.To(saved.result.tensor().device())
                          : gradient;
  autograd::Backward({saved.result}, {here}, std::move(pass));
  return of_input;
}

void StageCompute::WeightGrad(int micro_batch) {
  Left left = std::move(left_.extract(micro_batch).mapped());
  ComputeLate(left);
  const Stream current = CurrentStream(device_);
  for (const Stream& stream : streams_.weights) current.WaitFor(stream);
  sums_.Add(std::move(left.gradients),
            /*last=*/plan_.micro_batches.size() == 1);
}

// Several at once where there are streams for it, since none needs another.
void StageCompute::ComputeLate(Left& left) {
  const Stream current = CurrentStream(device_);
  for (auto& [leaf, gradient] : std::exchange(left.late, {})) {
    const std::vector<Stream>& streams = streams_.weights;
    const Stream stream =
        streams.empty() ? current : streams[next_stream_++ % streams.size()];
    stream.WaitFor(current);
    const StreamScope scope(stream);
    left.gradients.emplace_back(leaf, gradient());
    gradient = nullptr;
  }
}

StageReport StageCompute::Report() const {
  const auto joined = [](const std::vector<Tensor>& parts) {
    return parts.empty() ? Tensor() : ops::Cat(parts, 0);
  };
  std::vector<Tensor> losses, predicted;
  for (const Tensor& loss : losses_) losses.push_back(loss.Reshape({1}));
  for (const Tensor& output : outputs_) {
    if (plan_.loss != Loss::kNone && output.rank() == 2)
      predicted.push_back(ops::ArgMax(output, 1));
  }
  return {joined(losses), joined(predicted),
          plan_.training ? std::vector<Tensor>() : outputs_};
}

}  // namespace baton::dist

// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_compute.h"

#include <cstddef>

#include "absl/algorithm/container.h"
#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/transfer.h"
#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/multi_tensor.h"
#include "core/ops/reduce.h"
#include "models/nn/loss.h"

namespace baton::dist {

StageCompute::StageCompute(nn::Module& module, const StageSpec& spec,
                           const StepPlan& plan, StageStreams streams,
                           GradientSums& sums, nn::LossModule* own)
    : module_(module),
      device_(module.device()),
      spec_(spec),
      wiring_(spec.index, spec.count, spec.routes),
      plan_(plan),
      streams_(std::move(streams)),
      sums_(sums),
      own_(plan.loss == Loss::kOwn ? own : nullptr) {
  if (plan_.steps) {
    drawn_from_ = nn::GeneratorStates(module_);
    for (const auto& [name, buffer] : module_.NamedBuffers())
      buffers_.push_back(buffer);
    kept_ = ops::CloneMany(buffers_);
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
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].CopyFrom(kept_[i]);
}

void StageCompute::UndoIf(const Tensor& condition) const {
  ops::CopyManyIf(condition, buffers_, kept_);
}

std::vector<Variable> StageCompute::InputsOf(OutputsOfStages given) const {
  Parcels parcels;
  for (auto& [source, outputs] : given)
    parcels[source] = std::move(outputs.values);
  const Values values = wiring_.Join(std::move(parcels));
  std::vector<bool> constant(values.size(), !plan_.training);
  for (const auto& [source, outputs] : given) {
    const auto places = wiring_.InputsFrom(source, values.size());
    if (source == kBatch) {
      for (const size_t place : places) constant[place] = true;
    }
    for (const int32_t i : outputs.constants) {
      Require(i >= 0 && static_cast<size_t>(i) < places.size(), "forward",
              "stage ", source, " gave ", places.size(),
              " values and calls the one at ", i, " constant");
      constant[places[static_cast<size_t>(i)]] = true;
    }
  }
  std::vector<Variable> inputs;
  for (size_t i = 0; i < values.size(); ++i)
    inputs.emplace_back(values[i],
                        !constant[i] && IsFloating(values[i].dtype()));
  return inputs;
}

bool StageCompute::IsConstant(const Variable& output,
                              const std::vector<Variable>& inputs) const {
  // Its dtype already tells that it has no gradient.
  if (!IsFloating(output.dtype())) return false;
  if (!spec_.recompute) return !output.requires_grad();
  // Nothing was recorded: only unchanged inputs are known to be constant.
  return absl::c_any_of(inputs, [&](const Variable& input) {
    return input.id() == output.id() && !input.requires_grad();
  });
}

OutputsOfStages StageCompute::ForTargets(
    const std::vector<Variable>& outputs,
    const std::vector<Variable>& inputs) const {
  OutputsOfStages given;
  for (auto& [target, parcel] : wiring_.Split(TensorsOf(outputs))) {
    Outputs& to = given[target];
    to.values = std::move(parcel);
    const auto places = wiring_.OutputsTo(target, outputs.size());
    for (size_t i = 0; plan_.training && i < places.size(); ++i) {
      if (IsConstant(outputs[places[i]], inputs))
        to.constants.push_back(static_cast<int32_t>(i));
    }
  }
  return given;
}

std::vector<Variable> StageCompute::Compute(
    const std::vector<Variable>& inputs) const {
  std::vector<Variable> outputs = module_(module_.Placed(inputs));
  Require(!outputs.empty(), "forward", "the module gave no value");
  for (size_t i = 0; i < outputs.size(); ++i) {
    Require(outputs[i].defined(), "forward", "output ", i,
            " of the module is undefined");
  }
  return outputs;
}

OutputsOfStages StageCompute::Forward(int micro_batch, OutputsOfStages inputs,
                                      const Tensor& targets) {
  Saved saved;
  saved.inputs = InputsOf(std::move(inputs));
  saved.targets = targets;
  if (spec_.recompute) saved.drawn_from = nn::GeneratorStates(module_);
  std::optional<NoGrad> no_grad;
  if (!plan_.training || spec_.recompute) no_grad.emplace();
  std::optional<nn::PostponedStatistics::Scope> later;
  if (streams_.several() || spec_.deferred_batch_norm)
    later.emplace(postponed_);
  std::vector<Variable> results = Compute(saved.inputs);
  OutputsOfStages given = ForTargets(results, saved.inputs);
  if (spec_.is_last()) {
    const Values outputs = TensorsOf(results);
    if (!plan_.training) {
      outputs_.push_back(outputs);
    } else if (outputs.front().rank() == 2) {
      outputs_.push_back({outputs.front()});
    }
    if (plan_.loss != Loss::kNone) {
      results = {WeightedLoss(results, targets)};
      losses_.push_back(results.front().tensor());
      targets_.push_back(targets);
    }
  }
  if (plan_.training) {
    if (!spec_.recompute) saved.results = std::move(results);
    saved_[micro_batch] = std::move(saved);
  }
  return given;
}

Variable StageCompute::LossOf(const std::vector<Variable>& outputs,
                              const Tensor& targets) const {
  const Device device =
      own_ ? own_->device() : outputs.front().tensor().device();
  const Tensor wanted = targets.To(device);
  std::vector<Variable> whole;
  for (const Variable& output : outputs) {
    whole.push_back(autograd::To(
        IsHalf(output.dtype()) ? autograd::Cast(output, DType::kF32) : output,
        device));
  }
  if (own_) return own_->LossOfAll(whole, wanted);
  Require(whole.size() == 1, "loss", "the last stage gave ", whole.size(),
          " outputs, of which only a loss of one's own takes more than one");
  return plan_.loss == Loss::kCrossEntropy
             ? nn::CrossEntropy(whole.front(), wanted)
             : nn::MseLoss(whole.front(), wanted);
}

// The weighted losses add up to the mean over the batch, whatever the sizes of
// the micro-batches.
Variable StageCompute::WeightedLoss(const std::vector<Variable>& outputs,
                                    const Tensor& targets) const {
  Variable loss = LossOf(outputs, targets);
  Require(loss.tensor().numel() == 1, "loss", "expected one element, got ",
          loss.shape().ToString());
  if (plan_.micro_batches.size() == 1) return loss;
  return autograd::MulScalar(loss, static_cast<double>(targets.dim(0)) /
                                       static_cast<double>(plan_.rows));
}

std::vector<Variable> StageCompute::Recompute(const Saved& saved) const {
  const nn::RerunScope rerun(module_, saved.drawn_from);
  std::vector<Variable> results = Compute(saved.inputs);
  if (spec_.is_last()) return {WeightedLoss(results, saved.targets)};
  return results;
}

// Adds in a fixed order, whichever arrived first (Pipeline documents the
// order).
Values StageCompute::SumsOf(Parcels gradients,
                            const std::vector<Variable>& outputs) const {
  Values sums(outputs.size());
  for (auto of = gradients.rbegin(); of != gradients.rend(); ++of) {
    auto& [target, parcel] = *of;
    if (parcel.empty()) continue;
    const auto places = wiring_.OutputsTo(target, outputs.size());
    Require(places.size() == parcel.size(), "backward", parcel.size(),
            " gradients came from stage ", target, " for ", places.size(),
            " outputs");
    for (size_t i = 0; i < places.size(); ++i) {
      if (!parcel[i].defined()) continue;
      // That stage may compute on another device.
      parcel[i] = parcel[i].To(outputs[places[i]].tensor().device());
      autograd::AccumulateInto(sums[places[i]], std::move(parcel[i]));
    }
  }
  return sums;
}

Parcels StageCompute::Backward(StageOp op, int micro_batch, Parcels gradients,
                               const Tensor& of_loss) {
  Saved saved = std::move(saved_.extract(micro_batch).mapped());
  Left& left = left_[micro_batch];
  const bool used =
      spec_.is_last() || absl::c_any_of(gradients, [](const auto& parcel) {
        return absl::c_any_of(parcel.second,
                              [](const Tensor& x) { return x.defined(); });
      });
  Values of_inputs(saved.inputs.size());
  if (used) {
    if (spec_.recompute) saved.results = Recompute(saved);
    Values sums = spec_.is_last() ? Values{of_loss}
                                  : SumsOf(std::move(gradients), saved.results);
    of_inputs = RunBackward(op, saved, std::move(sums), left);
  }
  Parcels back;
  for (int source : wiring_.sources()) {
    if (source == kBatch) continue;
    Values& parcel = back[source];
    for (size_t i : wiring_.InputsFrom(source, of_inputs.size()))
      parcel.push_back(of_inputs[i]);
  }
  return back;
}

// Returns the gradients of the inputs; undefined if there is none.
Values StageCompute::RunBackward(StageOp op, const Saved& saved,
                                 Values gradients, Left& left) {
  std::vector<Variable> roots;
  Values of_roots;
  for (size_t i = 0; i < saved.results.size(); ++i) {
    const bool used = gradients[i].defined() || spec_.is_last();
    if (!used || !saved.results[i].requires_grad()) continue;
    roots.push_back(saved.results[i]);
    of_roots.push_back(std::move(gradients[i]));
  }
  Values of_inputs(saved.inputs.size());
  if (roots.empty()) return of_inputs;
  const auto input_of = [&](const Variable& leaf) {
    return absl::c_find_if(
               saved.inputs,
               [&](const Variable& input) { return input.id() == leaf.id(); }) -
           saved.inputs.begin();
  };
  const auto count = static_cast<std::ptrdiff_t>(of_inputs.size());
  autograd::GraphTask::Options pass;
  pass.sink = [&](const Variable& leaf, const Gradient& value) {
    if (const auto at = input_of(leaf); at < count) {
      of_inputs[static_cast<size_t>(at)] = value.Dense();
    } else {
      left.gradients.emplace_back(leaf, value);
    }
  };
  if (op == StageOp::kInputGrad) {
    pass.postpone = [&](const Variable& leaf) {
      return input_of(leaf) == count;
    };
    pass.later = [&](const Variable& leaf, autograd::DeferredGradient value) {
      left.late.emplace_back(leaf, std::move(value));
      // No other stage waits for the first stage's backwards.
      if (spec_.is_first() && !streams_.weights.empty()) ComputeLate(left);
    };
  }
  autograd::Backward(roots, of_roots, std::move(pass));
  return of_inputs;
}

void StageCompute::WeightGrad(int micro_batch) {
  Left left = std::move(left_.extract(micro_batch).mapped());
  ComputeLate(left);
  const Stream current = CurrentStream(device_);
  for (const Stream& stream : streams_.weights) current.WaitFor(stream);
  sums_.Add(std::move(left.gradients),
            /*last=*/plan_.micro_batches.size() == 1);
}

// Uses several streams if there are any, because the gradients are independent.
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

Tensor StageCompute::Correct() const {
  if (targets_.empty() || targets_.size() != outputs_.size()) return Tensor();
  std::vector<Tensor> predicted;
  for (const Values& outputs : outputs_) {
    if (outputs.front().rank() != 2) return Tensor();
    predicted.push_back(ops::ArgMax(outputs.front(), 1));
  }
  const Tensor rows = ops::Cat(predicted, 0);
  Tensor wanted = ops::Cat(targets_, 0).To(rows.device());
  if (wanted.rank() == 2 && IsFloating(wanted.dtype()))
    wanted = ops::ArgMax(wanted, 1);
  if (wanted.dtype() != DType::kI64 || wanted.shape() != rows.shape())
    return Tensor();
  return ops::Sum(ops::Equal(rows, wanted).To(DType::kF32));
}

StageReport StageCompute::Report() const {
  std::vector<Tensor> losses;
  for (const Tensor& loss : losses_) losses.push_back(loss.Reshape({1}));
  return {losses.empty() ? Tensor() : ops::Cat(losses, 0), Correct(),
          plan_.training ? std::vector<Values>() : outputs_};
}

}  // namespace baton::dist

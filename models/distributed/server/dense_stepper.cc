// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/dense_stepper.h"

#include <algorithm>
#include <cstddef>

#include "core/ops/multi_tensor.h"
#include "core/ops/optimizer.h"
#include "models/distributed/server/in_parts.h"
#include "models/distributed/server/options.h"

namespace baton::dist {
namespace {

// Elements that are summed and stepped at a time, so that they stay in the
// caches between the passes over them.
constexpr int64_t kStride = 64 << 10;

}  // namespace

DenseStepper::DenseStepper(const ops::StepRule& rule, const Shape& shape,
                           Device device, const std::vector<Tensor>& slots,
                           int64_t steps)
    : rule_(rule), steps_(steps) {
  for (const ops::StateSlot& slot : UsedSlots(rule)) {
    const size_t at = slots_.size();
    if (slot.name == nullptr) {
      slots_.emplace_back();
    } else if (at < slots.size()) {  // cloned, because others may hold it
      slots_.push_back(slots[at].To(device).Clone());
    } else {
      slots_.push_back(Tensor::Full(shape, slot.initial, {.device = device}));
    }
  }
}

std::vector<Tensor> DenseStepper::CopyOfSlots() const {
  return ops::CloneMany(slots_);
}

Tensor DenseStepper::Step(const Tensor& before, const Steps& steps,
                          double scale, std::optional<double> rate) {
  if (steps.empty()) return before;
  Tensor after = Tensor::EmptyLike(before);
  const Device device = before.device();
  const auto scalar = [&](double number) {
    return Tensor::Full({}, number, {.dtype = DType::kF64, .device = device});
  };
  const Tensor factor = scale == 1 ? Tensor() : scalar(scale);
  const Tensor given = rate.has_value() ? scalar(*rate) : Tensor();
  const int64_t all = before.numel();
  const int64_t stride = device.is_cpu() ? kStride : all;
  const auto step = [&](int64_t first, int64_t last) {
    Tensor sum;
    for (int64_t begin = first; begin < last; begin += stride) {
      const int64_t end = std::min(begin + stride, last);
      StepPart({begin, end, before, after, factor, given}, steps, sum);
    }
  };
  if (device.is_cpu()) {
    InParts(all, kElementsForThread, step);
  } else {
    step(0, all);
  }
  steps_ += static_cast<int64_t>(steps.size());
  return after;
}

void DenseStepper::StepPart(const Part& part, const Steps& steps,
                            Tensor& sum) const {
  const auto of = [&](const Tensor& whole) {
    return whole.defined() ? whole.Slice(0, part.begin, part.end) : whole;
  };
  ops::StepTarget target{.value = of(part.after),
                         .step = steps_,
                         .rate = part.rate,
                         .scale = part.factor};
  for (const Tensor& slot : slots_) target.state.push_back(of(slot));
  target.value.CopyFrom(of(part.before));
  for (const std::vector<Tensor>& gradients : steps) {
    ++target.step;
    target.grad = of(gradients[0]);
    if (gradients.size() > 1) {
      if (!sum.defined()) sum = Tensor::EmptyLike(target.grad);
      const Tensor added = sum.Slice(0, 0, part.end - part.begin);
      added.CopyFrom(target.grad);
      for (size_t i = 1; i < gradients.size(); ++i)
        ops::AddIntoMany({added}, {of(gradients[i])});
      target.grad = added;
    }
    ops::OptimizerStep({{.targets = {target}, .rule = rule_}});
  }
}

}  // namespace baton::dist

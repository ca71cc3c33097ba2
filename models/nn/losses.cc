// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/losses.h"

#include <utility>

#include "core/status.h"

namespace baton::nn {

ElementLoss::ElementLoss(Function function) : function_(std::move(function)) {}

Variable ElementLoss::Loss(const Variable& outputs, const Tensor& targets) {
  return function_(outputs, targets);
}

L1Loss::L1Loss(Reduction reduction)
    : ElementLoss([reduction](const Variable& x, const Variable& target) {
        return autograd::L1Loss(x, target, reduction);
      }) {}

MSELoss::MSELoss(Reduction reduction)
    : ElementLoss([reduction](const Variable& x, const Variable& target) {
        return autograd::MseLoss(x, target, reduction);
      }) {}

SmoothL1Loss::SmoothL1Loss(double beta, Reduction reduction)
    : ElementLoss([beta, reduction](const Variable& x, const Variable& target) {
        return autograd::SmoothL1Loss(x, target, beta, reduction);
      }) {}

HuberLoss::HuberLoss(double delta, Reduction reduction)
    : ElementLoss(
          [delta, reduction](const Variable& x, const Variable& target) {
            return autograd::HuberLoss(x, target, delta, reduction);
          }) {}

KLDivLoss::KLDivLoss(bool log_target, Reduction reduction)
    : ElementLoss(
          [log_target, reduction](const Variable& x, const Variable& target) {
            return autograd::KlDivLoss(x, target, log_target, reduction);
          }) {}

const Tensor* WeightedLoss::Keep(const char* name, const Tensor& weight) {
  return weight.defined() ? &RegisterBuffer(name, weight) : nullptr;
}

Tensor WeightedLoss::WeightAs(const Tensor* kept, DType dtype) {
  return kept == nullptr ? Tensor() : kept->To(dtype);
}

BCELoss::BCELoss(const autograd::BinaryLossOptions& options)
    : reduction_(options.reduction), weight_(Keep("weight", options.weight)) {
  Require(!options.pos_weight.defined(), "bce_loss",
          "a weight of positive targets is for logits");
}

Variable BCELoss::Loss(const Variable& outputs, const Tensor& targets) {
  return autograd::BceLoss(
      outputs, targets,
      {.weight = WeightAs(weight_, outputs.dtype()), .reduction = reduction_});
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const autograd::BinaryLossOptions& options)
    : reduction_(options.reduction),
      weight_(Keep("weight", options.weight)),
      pos_weight_(Keep("pos_weight", options.pos_weight)) {}

Variable BCEWithLogitsLoss::Loss(const Variable& outputs,
                                 const Tensor& targets) {
  return autograd::BceWithLogitsLoss(
      outputs, targets,
      {.weight = WeightAs(weight_, outputs.dtype()),
       .pos_weight = WeightAs(pos_weight_, outputs.dtype()),
       .reduction = reduction_});
}

ClassLoss::ClassLoss(const ClassLossOptions& options, int class_axis)
    : options_(options),
      class_axis_(class_axis),
      weight_(Keep("weight", options.weight)) {}

ClassLossOptions ClassLoss::OptionsFor(const Variable& outputs) const {
  ClassLossOptions options = options_;
  options.weight = WeightAs(weight_, outputs.dtype());
  return options;
}

NLLLoss::NLLLoss(const ClassLossOptions& options, int class_axis)
    : ClassLoss(options, class_axis) {}

Variable NLLLoss::Loss(const Variable& outputs, const Tensor& targets) {
  return autograd::NllLoss(outputs, targets, OptionsFor(outputs), class_axis());
}

CrossEntropyLoss::CrossEntropyLoss(const ClassLossOptions& options,
                                   int class_axis)
    : ClassLoss(options, class_axis) {}

Variable CrossEntropyLoss::Loss(const Variable& outputs,
                                const Tensor& targets) {
  return autograd::CrossEntropy(outputs, targets, OptionsFor(outputs),
                                class_axis());
}

}  // namespace baton::nn
